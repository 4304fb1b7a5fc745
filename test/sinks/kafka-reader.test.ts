import kafkajs from 'kafkajs';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openReader } from '../../src/sinks/kafka-reader.ts';
import type { TopicReader } from '../../src/sinks/kafka-reader.ts';
import { fakeKafka } from '../support/fake-kafka.ts';
import type { FakeKafka } from '../support/fake-kafka.ts';

const TOPIC = 'wine.orders';
const AWAY = () => new kafkajs.KafkaJSConnectionError('Connection error: ECONNREFUSED');

let fake: FakeKafka;
let seen: string[];
beforeEach(() => {
  fake = fakeKafka(TOPIC);
  seen = [];
});

/** A reader of offsets 10 to 19 of partition 0, and of 5 to 9 of partition 1. */
function open(isPatient = true): TopicReader {
  return openReader({
    kafka: fake.kafka,
    topic: TOPIC,
    from: new Map([
      [0, 10n],
      [1, 5n],
    ]),
    ends: new Map([
      [0, 20n],
      [1, 10n],
    ]),
    isPatient,
    onBatch: ({ partition, messages }) =>
      seen.push(...messages.map(({ offset }) => `${partition}:${offset}`)),
  });
}
const consumer = async (nth = 0) => {
  await vi.waitUntil(() => fake.consumers.length > nth, { timeout: 5_000, interval: 5 });
  return fake.consumers[nth]!;
};

describe('openReader', () => {
  it('tells kafkajs at each join where to go on: it has forgotten', async () => {
    const reader = open();
    const member = await consumer();
    member.join();
    expect(member.seeks).toEqual(['0:10', '1:5']);
    await member.give(0, [10, 11, 12]);
    member.join();
    expect(member.seeks.slice(2)).toEqual(['0:13', '1:5']);
    await reader.close();
  });

  it('hands over once what comes twice, and nothing from before or behind', async () => {
    const reader = open();
    const member = await consumer();
    member.join();
    await member.give(0, [8, 9, 10, 11]);
    member.join();
    await member.give(0, [10, 11, 12]); // was fetched before it was told where to go on
    await member.give(0, [13, 19, 20, 21]);
    await member.give(1, [9]);
    await reader.done;
    expect(seen).toEqual(['0:10', '0:11', '0:12', '0:13', '0:19', '1:9']);
    await reader.close();
    expect(fake.deletedGroups).toHaveLength(1);
  });

  it('makes another consumer after a crash that can pass, and goes on where it was', async () => {
    const reader = open();
    const first = await consumer();
    first.join();
    await first.give(0, [10, 11]);
    first.crash(AWAY());
    const second = await consumer(1);
    expect(first.isConnected).toBe(false);
    second.join();
    expect(second.seeks).toEqual(['0:12', '1:5']);
    await second.give(0, [19]);
    await second.give(1, [9]);
    await reader.done;
    await reader.close();
  });

  it('ends with the error of a crash where it is not patient', async () => {
    const reader = open(false);
    const member = await consumer();
    member.join();
    member.crash(AWAY());
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    await reader.close();
  });

  it('ends with the error of a crash that no other consumer can mend', async () => {
    const reader = open();
    const member = await consumer();
    member.join();
    // Its type takes no message, the class does.
    member.crash(Reflect.construct(kafkajs.KafkaJSSASLAuthenticationError, ['wrong']) as Error);
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
    await reader.close();
    expect(fake.consumers).toHaveLength(1);
  });
});
