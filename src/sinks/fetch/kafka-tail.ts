import type { Kafka } from 'kafkajs';
import { catchError, lastValueFrom } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Offsets, Tail, TailMessage } from '../transactional-log.ts';
import type { PartitionBatch } from './kafka-reader.ts';
import { readBatches } from './read-batches.ts';
import { withAdmin } from '../client/with-admin.ts';

export interface TailOptions extends Tail {
  readonly kafka: Kafka;
}

/** The offsets at which the partitions of a topic end just now. Needs no consumer group. */
export function topicEnds(kafka: Kafka, topic: string): Promise<Offsets> {
  return withAdmin(kafka, async (admin) => {
    const ends = await admin.fetchTopicOffsets(topic);
    return new Map(ends.map(({ partition, high }) => [partition, BigInt(high)]));
  });
}

/** Whether a topic has a message that was written at this time or later, ms since the epoch. */
export async function writtenSince(kafka: Kafka, topic: string, at: number): Promise<boolean> {
  return (await offsetsSince(kafka, topic, at)).size > 0;
}

/** By partition the offset of its first message of this time or later, ms since the epoch; of those that have one. */
export function offsetsSince(kafka: Kafka, topic: string, at: number): Promise<Offsets> {
  return withAdmin(kafka, async (admin) => {
    const ends = await admin.fetchTopicOffsets(topic);
    // Where there is no such message kafkajs gives the end.
    const since = await admin.fetchTopicOffsetsByTimestamp(topic, Math.floor(at));
    return new Map(
      since.flatMap(({ partition, offset }) => {
        const end = ends.find((one) => one.partition === partition);
        const isThere = end !== undefined && BigInt(offset) < BigInt(end.high);
        return isThere ? [[partition, BigInt(offset)] as const] : [];
      }),
    );
  });
}

/**
 * Reads a topic from one set of offsets to another, `read_committed`, and resolves when all of it
 * has been handed over. Partitions that have nothing to read are done at once; when that is all of
 * them nothing is asked of the broker.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE` also where something of it is gone by now: whoever asks anew
 * where the topic begins and ends finds out.
 */
export async function readTail(options: TailOptions): Promise<void> {
  const { kafka, topic, from, to, onMessages } = options;
  const starts = new Map([...to.keys()].map((partition) => [partition, from.get(partition) ?? 0n]));
  // Who asked says that Kafka is away, and begins again.
  const reading = { kafka, topic, range: { from: starts, ends: to }, isPatient: false };
  const read$ = readBatches(reading, (batch) => onMessages(tailMessages(batch)));
  const refused$ = catchError((error: unknown) => {
    throw isGone(error) ? changed(topic, error) : error;
  });
  await lastValueFrom(read$.pipe(refused$), { defaultValue: undefined });
}

function isGone(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'POSITION';
}

function changed(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `${topic} was deleted, made anew or truncated while it was read back: it is read back again`,
    { cause, context: { topic } },
  );
}

function tailMessages({ partition, messages }: PartitionBatch): TailMessage[] {
  return messages.map(({ offset, key, value }) => ({ partition, offset, key, value }));
}
