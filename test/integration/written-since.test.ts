import { Kafka, logLevel } from 'kafkajs';
import { expect, inject, it } from 'vitest';
import { hasMessageSince } from '../../src/kafka/fetch/kafka-tail.ts';
import { createTopic } from './support/created-topic.ts';

const TOPIC = 'written-since';
const AT = Date.parse('2026-06-01T12:00:00Z');

it('tells whether a topic has a message of a time or later, in any of its partitions', async () => {
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  await createTopic(kafka, { topic: TOPIC, numPartitions: 3 });
  expect(await hasMessageSince(kafka, TOPIC, 0)).toBe(false);

  const producer = kafka.producer();
  await producer.connect();
  const messages = [0, 1].map((partition) => ({
    ...{ partition, value: 'cursor' },
    timestamp: String(AT + partition),
  }));
  await producer.send({ topic: TOPIC, messages });
  await producer.disconnect();
  const tells = (at: number) => expect.poll(() => hasMessageSince(kafka, TOPIC, at));
  await tells(AT).toBe(true);
  await tells(AT + 0.5).toBe(true);
  await tells(AT + 1).toBe(true);
  await tells(AT + 2).toBe(false);
});
