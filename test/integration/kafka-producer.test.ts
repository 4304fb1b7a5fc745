import { randomBytes } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openKafkaProducer } from '../../src/sinks/kafka-producer.ts';
import { readTail, topicEnds } from '../../src/sinks/kafka-tail.ts';
import type { Offsets, TailMessage } from '../../src/sinks/broker.ts';
import type { Message, TransactionalSink } from '../../src/sinks/sink.ts';
import { createTopic } from './support/created-topic.ts';

const TOPIC = 'producer.records';
const PARTITIONS = 6;

/** By key, the partition of six that Java's client takes: murmur2 as in its own UtilsTest. */
const JAVA: Readonly<Record<string, number>> = {
  '21': 0,
  foobar: 0,
  'a-little-bit-long-string': 2,
  'a-little-bit-longer-string': 5,
  lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: 5,
  abc: 3,
};

describe('openKafkaProducer', () => {
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  let sink: TransactionalSink;
  const open = () =>
    openKafkaProducer({
      kafka,
      transactionalId: 'producer-test',
      partitions: new Map([[TOPIC, PARTITIONS]]),
    });
  beforeAll(async () => {
    await createTopic(kafka, { topic: TOPIC, numPartitions: PARTITIONS });
    sink = await open();
  });
  afterAll(() => sink.close());

  const from = () => topicEnds(kafka, TOPIC);
  /** What was committed since, once it is so many: markers are written shortly after a commit. */
  const since = async (start: Offsets, count: number): Promise<TailMessage[]> => {
    let read: TailMessage[] = [];
    await expect
      .poll(async () => (read = await readSince(start)).length, { timeout: 20_000 })
      .toBe(count);
    return read;
  };
  const readSince = async (start: Offsets): Promise<TailMessage[]> => {
    const read: TailMessage[] = [];
    const onMessages = (messages: readonly TailMessage[]) => {
      read.push(...messages);
      return Promise.resolve();
    };
    await readTail({ kafka, topic: TOPIC, from: start, to: await from(), onMessages });
    return read;
  };
  const message = (key: string, value: Buffer | null = Buffer.from('v')): Message => ({
    topic: TOPIC,
    key,
    value,
  });

  it("puts keys where Java's client does", async () => {
    const start = await from();
    await sink.commit(Object.keys(JAVA).map((key) => message(key)));
    const found = (await since(start, Object.keys(JAVA).length)).map(({ key, partition }) => [
      key!.toString(),
      partition,
    ]);
    expect(Object.fromEntries(found)).toEqual(JAVA);
  });

  it('commits more than a batch may hold, in the order given, and tells where it ends', async () => {
    const start = await from();
    // Random bytes: what could be compressed would fit.
    const messages = Array.from({ length: 60 }, (_, n) =>
      message('abc', Buffer.concat([Buffer.of(n), randomBytes(100_000)])),
    );
    const ends = await sink.commit(messages);
    const read = await since(start, messages.length);
    expect(read.map(({ value }) => value![0])).toEqual(messages.map((_, n) => n));
    expect(ends.get(TOPIC)?.get(3)).toBe((await from()).get(3));
  });

  it('is fenced by the next one of its id, and what it had not committed is not there', async () => {
    const start = await from();
    const next = await open();
    await expect(sink.commit([message('abc')])).rejects.toMatchObject({
      code: 'COMMIT_FAILED',
      context: { epoch: true },
    });
    await next.commit([message('abc', null)]);
    expect(await since(start, 1)).toMatchObject([{ value: null }]);
    await sink.close();
    sink = next;
  });
});
