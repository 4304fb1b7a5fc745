import { CompressionTypes } from 'kafkajs';
import { expect, vi } from 'vitest';
import type { TailMessage } from '../../src/kafka/log.ts';
import { kafka, messagesOf } from '../integration/support/all-lists.ts';
import { createTopic } from '../integration/support/created-topic.ts';
import { topicEnds } from '../integration/support/topic-ends.ts';

/** Topic settings with which a broker compacts as early as it can; it keeps tombstones for a day. */
const EAGER = [
  { name: 'cleanup.policy', value: 'compact' },
  { name: 'min.cleanable.dirty.ratio', value: '0.0001' },
  { name: 'segment.ms', value: '100' },
  { name: 'max.compaction.lag.ms', value: '100' },
];

/**
 * Copies keys and values of a topic's committed messages, partition by partition, and resolves when Kafka has compacted the copy: few older messages are left of
 * keys that have newer ones.
 */
export async function compactedCopy(from: string, to: string): Promise<void> {
  const messages = await messagesOf(from);
  const keys = new Set(messages.map(({ key }) => String(key)));
  const numPartitions = (await topicEnds(kafka(), from)).size;
  await createTopic(kafka(), { topic: to, numPartitions, configEntries: EAGER });
  const producer = kafka().producer();
  await producer.connect();
  const send = (sent: readonly TailMessage[]) =>
    producer.send({
      topic: to,
      compression: CompressionTypes.GZIP,
      messages: sent.map(({ key, value, partition }) => ({ key, value, partition })),
    });
  try {
    await send(messages);
    // A segment that is written to is not compacted: the last message of each partition, sent again, begins a new one.
    const last = [...new Map(messages.map((message) => [message.partition, message])).values()];
    await vi.waitFor(
      async () => {
        await send(last);
        expect((await messagesOf(to)).length).toBeLessThan(keys.size + 30);
      },
      { timeout: 120_000, interval: 3_000 },
    );
  } finally {
    await producer.disconnect();
  }
}
