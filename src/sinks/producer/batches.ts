import { maxBytesOf, packed } from './record-batch.ts';
import type { PackedRecords, ProducerRecord } from './record-batch.ts';

/** Batches of one partition, in the order in which they have to be there. */
export interface PartitionBatches {
  readonly topic: string;
  readonly partition: number;
  readonly batches: readonly PackedRecords[];
}

/** Of messages in one batch, before they are compressed: brokers take 1 MiB, unless told otherwise. */
export const MAX_BATCH_BYTES = 900_000;
/** What a batch has beside its messages, and what gzip may add to bytes that it can't make fewer. */
const BATCH_OVERHEAD_BYTES = 1_000;
/** For a message's key and headers. */
const KEY_AND_HEADER_BYTES = 10_000;

/** Most bytes of messages in one batch, where a topic takes batches of `max.message.bytes`. Default a broker's own. */
function maxBatchBytes(maxMessageBytes = Infinity): number {
  return Math.min(MAX_BATCH_BYTES, maxMessageBytes - BATCH_OVERHEAD_BYTES);
}

/** Most bytes of one message's value, so that a batch can hold it with its key and headers. */
export function maxEventBytes(maxMessageBytes?: number): number {
  return maxBatchBytes(maxMessageBytes) - KEY_AND_HEADER_BYTES;
}

/** A message that knows its partition. */
export interface PlacedRecord extends ProducerRecord {
  readonly topic: string;
  readonly partition: number;
}

/**
 * Packs messages into batches of no more bytes than a broker takes, each partition's in the order given. All
 * are packed side by side, so that they take as long as the processors do.
 */
export function batchesOf(
  records: Iterable<PlacedRecord>,
  maxMessageBytes: ReadonlyMap<string, number> = new Map(),
): Promise<PartitionBatches[]> {
  const partitions = new Map<string, Filling>();
  for (const record of records) {
    const { topic, partition } = record;
    const name = `${topic} ${partition}`;
    let filling = partitions.get(name);
    if (!filling) {
      const maxBytes = maxBatchBytes(maxMessageBytes.get(topic));
      partitions.set(name, (filling = { topic, partition, maxBytes, batches: [] }));
    }
    const bytes = maxBytesOf(record);
    const last = filling.batches.at(-1);
    if (last && last.bytes + bytes <= filling.maxBytes) {
      last.records.push(record);
      last.bytes += bytes;
    } else filling.batches.push({ records: [record], bytes });
  }
  return Promise.all(
    [...partitions.values()].map(async ({ topic, partition, batches }) => ({
      topic,
      partition,
      batches: await Promise.all(batches.map(({ records, bytes }) => packed(records, bytes))),
    })),
  );
}

interface Filling {
  readonly topic: string;
  readonly partition: number;
  /** Of one batch. */
  readonly maxBytes: number;
  /** All but the last are full. `bytes`: the most that the records may take. */
  readonly batches: { readonly records: PlacedRecord[]; bytes: number }[];
}
