import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import type { Offsets, Tail } from './broker.ts';
import { kafkaError } from './kafka-error.ts';
import { withAdmin } from './with-admin.ts';

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
export function writtenSince(kafka: Kafka, topic: string, at: number): Promise<boolean> {
  return withAdmin(kafka, async (admin) => {
    const ends = await admin.fetchTopicOffsets(topic);
    // Where there is no such message kafkajs gives the end.
    const since = await admin.fetchTopicOffsetsByTimestamp(topic, Math.floor(at));
    return since.some(({ partition, offset }) => {
      const end = ends.find((one) => one.partition === partition);
      return end !== undefined && BigInt(offset) < BigInt(end.high);
    });
  });
}

/**
 * Reads a topic from one set of offsets to another, `read_committed`, and resolves when all of it
 * has been handed over. Partitions that have nothing to read are done at once; when that is all of
 * them nothing is asked of the broker.
 *
 * kafkajs can't read without a group: this one has a name of its own, commits nothing, and is
 * deleted afterwards.
 */
export async function readTail(options: TailOptions): Promise<void> {
  const { kafka, topic, from, to, onMessages } = options;
  const left = new Map([...to].filter(([partition, end]) => end > (from.get(partition) ?? 0n)));
  if (left.size === 0) return;

  const groupId = `cellarstream-tail-${randomUUID()}`;
  const consumer = kafka.consumer({ groupId, maxBytesPerPartition: 4 * 2 ** 20 });
  try {
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await new Promise<void>((done, failed) => {
      const reached = (partition: number, offset: bigint) => {
        const end = left.get(partition);
        if (end === undefined || offset + 1n < end) return;
        left.delete(partition);
        consumer.pause([{ topic, partitions: [partition] }]);
        if (left.size === 0) done();
      };
      // The end of a partition may be a transaction's marker, which only this event tells of.
      consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) =>
        reached(payload.partition, BigInt(payload.lastOffset)),
      );
      consumer.on(consumer.events.CRASH, ({ payload }) => {
        if (!payload.restart) failed(payload.error); // else it begins again by itself
      });
      consumer
        .run({
          autoCommit: false,
          eachBatch: async (payload) => {
            const { batch } = payload;
            const end = to.get(batch.partition) ?? 0n;
            const { partition } = batch;
            const messages = batch.messages
              .filter(({ offset }) => BigInt(offset) < end)
              .map(({ offset, key, value }) => ({ partition, offset, key, value }));
            try {
              await onMessages(messages);
            } catch (cause) {
              const error = cause instanceof Error ? cause : new Error('unread', { cause });
              failed(error); // kafkajs would try it again for ever
              throw error;
            }
            await payload.heartbeat();
          },
        })
        .catch((error: unknown) => failed(error as Error));
      for (const partition of to.keys()) {
        const offset = from.get(partition) ?? 0n;
        consumer.seek({ topic, partition, offset: offset.toString() });
        if (!left.has(partition)) consumer.pause([{ topic, partitions: [partition] }]);
      }
    });
  } catch (error) {
    throw kafkaError(error);
  } finally {
    await consumer.disconnect();
    await deleteGroup(kafka, groupId);
  }
}

async function deleteGroup(kafka: Kafka, groupId: string): Promise<void> {
  // Where it fails: an empty group without offsets is dropped by the broker in time.
  await withAdmin(kafka, (admin) => admin.deleteGroups([groupId])).catch(() => undefined);
}
