import type { Consumer, ConsumerConfig, Kafka } from 'kafkajs';
import { firstValueFrom, merge, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { requireTopic } from '../client/topic-bounds.ts';
import { withAdmin } from '../client/with-admin.ts';

/**
 * How many partitions a topic has.
 *
 * @param remedy What to do where it isn't there: consumers make no topics.
 * @throws CellarstreamError `POSITION` where it isn't there; `KAFKA_UNREACHABLE`.
 */
export function partitionsOf(kafka: Kafka, topic: string, remedy: string): Promise<number> {
  return withAdmin(kafka, async (admin) => {
    await requireTopic(admin, topic, remedy);
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    return topics[0]?.partitions.length ?? 0;
  });
}

/** A group that is to begin at the end of a topic. */
export interface GroupStart {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly member: ConsumerConfig;
  /** Its first value ends it. It must replay that value. */
  readonly leave$: Observable<unknown>;
  readonly scheduler: SchedulerLike;
}

/** Between two tries, ms: the leader is another member, and has not written the offsets yet. */
const PAUSE_MS = 250;

/**
 * Has a group that has no offsets yet begin at the end of a topic as of now, and writes that down in
 * its offsets: a member that ended before its first commit would else take the next one past whatever
 * came in between. A group that has offsets keeps them. Resolves with whether to go on: not
 * behind `leave$`.
 *
 * Of members that start together it's the leader who writes: one generation has one, and Kafka takes
 * no offsets of an older generation, so none are written over.
 */
export async function startAtEnd(start: GroupStart): Promise<boolean> {
  const { kafka, topic, member, leave$, scheduler } = start;
  const lacking = () => partitionsWithoutOffset(kafka, topic, member.groupId);
  let hasLeft = false;
  const left = firstValueFrom(leave$, { defaultValue: undefined }).then(() => {
    hasLeft = true;
  });
  left.catch(() => undefined); // to be awaited, unless the group has offsets

  while ((await lacking()).length > 0 && !hasLeft) {
    const consumer = kafka.consumer(member);
    try {
      const crash = crashOf(consumer);
      const joined = new Promise<boolean>((resolve) => {
        consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => resolve(payload.isLeader));
      });
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: false });
      const eachBatch = () => Promise.resolve(); // to be read by the member that stays
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch });
      const isLeader = await Promise.race([crash, joined, left]);
      const offsets = isLeader ? await lacking() : [];
      if (offsets.length > 0) await consumer.commitOffsets(offsets);
    } finally {
      await consumer.disconnect();
    }
    await firstValueFrom(merge(timer(PAUSE_MS, scheduler), left));
  }
  return !hasLeft;
}

/** Rejects when a consumer has crashed. */
export function crashOf(consumer: Consumer): Promise<never> {
  const crash = new Promise<never>((_, failed) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => failed(payload.error));
  });
  crash.catch(() => undefined); // to be awaited, unless something else fails first
  return crash;
}

/** Partitions of a group without any offset, each with where it ends: all of them, or none. */
function partitionsWithoutOffset(kafka: Kafka, topic: string, groupId: string) {
  return withAdmin(kafka, async (admin) => {
    const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] });
    if (offsets?.partitions.some(({ offset }) => BigInt(offset) >= 0n)) return [];
    const ends = await admin.fetchTopicOffsets(topic);
    return ends.map(({ partition, high }) => ({ topic, partition, offset: high }));
  });
}
