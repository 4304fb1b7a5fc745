import { mostBytesOf, packed } from './record-batch.ts';
import type { PackedRecords, ProducerRecord } from './record-batch.ts';

/** Batches of one partition, in the order in which they have to be there. */
export interface PartitionBatches {
  readonly topic: string;
  readonly partition: number;
  readonly batches: readonly PackedRecords[];
}

/** Most bytes of messages in one batch, before they are compressed: brokers take 1 MiB, unless told otherwise. */
export const MOST_BATCH_BYTES = 900_000;

/** A message that knows its partition. */
export interface PlacedRecord extends ProducerRecord {
  readonly topic: string;
  readonly partition: number;
}

/**
 * Packs messages into batches of no more bytes than a broker takes, each partition's in the order given. All
 * are packed side by side, so that they take as long as the processors do.
 */
export function batchesOf(records: Iterable<PlacedRecord>): Promise<PartitionBatches[]> {
  const partitions = new Map<string, Filling>();
  for (const record of records) {
    const { topic, partition } = record;
    const name = `${topic} ${partition}`;
    let filling = partitions.get(name);
    if (!filling) partitions.set(name, (filling = { topic, partition, bytes: 0, batches: [[]] }));
    const bytes = mostBytesOf(record);
    if (filling.bytes > 0 && filling.bytes + bytes > MOST_BATCH_BYTES) {
      filling.batches.push([]);
      filling.bytes = 0;
    }
    filling.bytes += bytes;
    filling.batches.at(-1)!.push(record);
  }
  return Promise.all(
    [...partitions.values()].map(async ({ topic, partition, batches }) => ({
      topic,
      partition,
      batches: await Promise.all(batches.map(packed)),
    })),
  );
}

interface Filling {
  readonly topic: string;
  readonly partition: number;
  /** Of the last batch. */
  bytes: number;
  readonly batches: ProducerRecord[][];
}
