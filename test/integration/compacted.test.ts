import { asyncScheduler, lastValueFrom, toArray } from 'rxjs';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Consumed } from '../../src/consumers/consumed.ts';
import { replay } from '../../src/consumers/replay.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { kafkaTransactionalLog } from '../../src/sinks/open-kafka.ts';
import { TopicReader } from '../../src/kafka/fetch/kafka-reader.ts';
import { readTail } from '../../src/kafka/fetch/kafka-tail.ts';
import { topicEnds } from './support/topic-ends.ts';
import { openCheckpoint } from '../../src/pipeline/checkpoint/checkpoint.ts';
import { createRegistry } from '../../src/schemas/registry/registry.ts';
import { startServices } from '../../src/devstack/start-services.ts';
import type { Services } from '../../src/devstack/services.ts';
import { openStore } from '../../src/state/store.ts';
import { serverVersions } from './support/server-versions.ts';
import { folderForTest } from './support/service.ts';
import { numbers, writtenTopic } from './support/written-topic.ts';
import type { Clients } from './support/written-topic.ts';

/** Compacted as soon as may be: a segment ends when a message is a tenth of a second younger. */
const EAGER = {
  'cleanup.policy': 'compact',
  'min.cleanable.dirty.ratio': '0.0001',
  'segment.ms': '100',
  'segment.bytes': String(2 ** 20),
  'min.compaction.lag.ms': '0',
  'max.compaction.lag.ms': '100',
  'delete.retention.ms': '0',
};

const WEEK = String(7 * 86_400_000);
const COMPACTED = { timeout: 100_000, interval: 500 };

// A broker of its own: a cleaner that has nothing else to do, and looks often.
let services: Services;
let clients: Clients;
beforeAll(async () => {
  services = await startServices({
    ...serverVersions(),
    kafka: {
      settings: { 'log.cleaner.backoff.ms': '300' },
    },
  });
  clients = {
    kafka: new Kafka({ brokers: services.brokers, logLevel: logLevel.NOTHING }),
    registry: createRegistry({ url: services.registryUrl }),
  };
});
afterAll(async () => {
  await clients.registry.close();
  await services.stop();
});

const isLast = ({ partition, key, value }: Consumed<unknown>) =>
  partition === 0 && key === '49' && value === null;

it('completes on a compacted topic with holes, aborts and a tombstone at its very end', async () => {
  const topic = topicsUnder('compacted').orderStatusChanges;
  const written = await writtenTopic(clients, topic.name, 2, EAGER);
  const key = (number: number) => String(number % 50);
  for (let round = 0; round < 20; round++) {
    const first = round * 50;
    const at = Date.now() - (20 - round) * 10_000; // each commit begins a segment
    await written.write(0, numbers(first, first + 49), { key, at });
    await written.write(0, numbers(90_000, 90_020), { key, at, end: 'abort' });
  }
  const gone = numbers(0, 49).map((number) => ({ key: String(number), value: null }));
  await written.send(0, gone.slice(0, 49));

  await vi.waitUntil(async () => {
    await written.send(0, gone.slice(49)); // ends a segment, and gives the cleaner something to do
    const end = (await topicEnds(clients.kafka, topic.name)).get(0)!;
    const messages = await lastValueFrom(replay({ ...clients, topic }).pipe(toArray()));
    const last = messages.at(-1)!;
    // Of 1,050 messages; and behind the last one there is the marker of its commit.
    return messages.length < 200 && isLast(last) && end === BigInt(last.offset) + 2n;
  }, COMPACTED);
});

it('does not take a record for alive that was deleted, where compaction has taken the deletion before a folder came back', async () => {
  const { kafka } = clients;
  const [topic, cursorTopic] = ['stale.orders', 'stale.cursors'];
  await writtenTopic(clients, topic, 1, EAGER);
  await writtenTopic(clients, cursorTopic, 1);
  const partitions = new Map([topic, cursorTopic].map((name) => [name, 1] as const));
  const image = { schemaId: 1, bytes: Buffer.from('image') };
  const open = async (instance: string, folder: string) => {
    const store = openStore(folder);
    const log = await openCheckpoint({
      log: kafkaTransactionalLog({ kafka }, { partitions }),
      store: store.task('estate/orders'),
      names: { task: 'estate/orders', topic, cursorTopic, transactionalId: 'stale' },
      instance,
      readImage: (event) => {
        const { sequence, isGone } = JSON.parse(event.toString()) as Event;
        return Promise.resolve({ sequence, image: isGone ? null : image });
      },
      claimState: {},
      canRequestRecords: true,
      scheduler: asyncScheduler,
    });
    return { log, close: () => log.close().then(() => store.close()) };
  };
  const publish = async (
    { log }: Awaited<ReturnType<typeof open>>,
    key: string,
    isGone = false,
  ) => {
    const sequence = log.cursor.sequence + 1;
    const value = Buffer.from(JSON.stringify({ sequence, isGone } satisfies Event));
    await log.commit({
      messages: [{ topic, key, value }, ...(isGone ? [{ topic, key, value: null }] : [])],
      images: [{ key, sequence, image: isGone ? null : image }],
      cursor: { ...log.cursor, sequence },
    });
  };

  const old = folderForTest();
  const one = await open('one', old);
  for (const key of ['a', 'b']) await publish(one, key);
  await one.close();

  const other = await open('other', folderForTest());
  await publish(other, 'a', true);
  await vi.waitUntil(async () => {
    await publish(other, 'c'); // ends a segment
    const keys = new Set<string>();
    await readTail({
      kafka,
      topic,
      from: new Map(),
      to: await topicEnds(kafka, topic),
      onMessages: async (messages) => {
        for (const { key } of messages) keys.add(String(key));
        await Promise.resolve();
      },
    });
    return !keys.has('a') && keys.has('b');
  }, COMPACTED);
  await other.close();

  const again = await open('one', old);
  expect(['a', 'b', 'c'].map((key) => again.log.store.get(key) !== undefined)).toEqual([
    false,
    true,
    true,
  ]);
  await again.close();
});

interface Event {
  readonly sequence: number;
  readonly isGone: boolean;
}

it('passes a segment of which compaction has left a header alone', async () => {
  const name = 'compacted-header';
  // Not again and again: the next round would make the header and the segment behind it one.
  const settings = { ...EAGER, 'min.cleanable.dirty.ratio': '0.3', 'max.compaction.lag.ms': WEEK };
  const written = await writtenTopic(clients, name, 1, settings);
  const began = Date.now() - 60_000;
  // Of the last batch of a producer the header stays: it tells its sequence. 500 KB, and the segment
  // behind it, are too much to be made one.
  const keys = numbers(1, 5);
  await send(clients.kafka, name, [{ keys, bytes: 100_000, at: began }]);
  await send(clients.kafka, name, [
    { keys, bytes: 10, at: began + 10_000 },
    ...numbers(101, 112).map((key) => ({ keys: [key], bytes: 100_000, at: began + 10_000 })),
  ]);
  await written.write(0, [1_000, 1_001]); // ends the segment before it

  const { offsets, empty } = await vi.waitUntil(async () => {
    const read = await readAll(clients.kafka, name);
    // The end that can be read is some ms behind a commit.
    return read.offsets[0] !== 0 && read.offsets.at(-1) === 23 && read;
  }, COMPACTED);
  expect(offsets).toEqual([...numbers(5, 9), ...numbers(10, 21), 22, 23]);
  expect(empty[0]).toBe(5);
});

interface Records {
  readonly keys: readonly number[];
  /** Of each value. */
  readonly bytes: number;
  readonly at: number;
}

/** Batches of one producer that is not transactional, each sent by itself. */
async function send(kafka: Kafka, topic: string, batches: readonly Records[]): Promise<void> {
  const producer = kafka.producer({
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
  });
  await producer.connect();
  for (const { keys, bytes, at } of batches) {
    const value = Buffer.alloc(bytes, 1);
    const messages = keys.map((key) => ({ key: String(key), value, timestamp: String(at) }));
    await producer.send({ topic, messages });
  }
  await producer.disconnect();
}

/** The offsets of the messages of partition 0, and where it went on when there was none. */
async function readAll(kafka: Kafka, topic: string) {
  const ends = await topicEnds(kafka, topic);
  const offsets: number[] = [];
  const empty: number[] = [];
  const reader = new TopicReader({
    kafka,
    topic,
    range: { from: new Map([[0, 0n]]), ends },
    onBatch: ({ messages, next }) => {
      offsets.push(...messages.map(({ offset }) => Number(offset)));
      if (messages.length === 0) empty.push(Number(next));
    },
  });
  await reader.done;
  await reader.close();
  return { offsets, empty };
}
