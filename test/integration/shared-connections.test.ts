import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { expect, inject, it, onTestFinished } from 'vitest';
import { Connections } from '../../src/kafka/client/connections.ts';
import { openKafkaProducer } from '../../src/sinks/producer/kafka-producer.ts';
import { partitionOf } from '../../src/sinks/producer/record-batch.ts';
import { RESOURCES } from '../../src/sandbox/resources.ts';
import type { Message, ProducerIdentity } from '../../src/sinks/sink.ts';
import { holdRequest, KafkaProxy } from '../support/proxy/kafka-proxy.ts';
import { createTopic } from './support/created-topic.ts';
import {
  cliForTest,
  firstReadDone,
  connections as settings,
  folderForTest,
  sandboxForTest,
} from './support/service.ts';
import { PARTITIONS, tailOf } from './support/producer-topic.ts';

const PRODUCERS = 100;
const MOST = 6;
/** Instead of kafkajs' 30 s. */
const REQUEST_TIMEOUT_MS = 3_000;
const KEYS = Array.from({ length: PARTITIONS }, (_, partition) => {
  for (let n = 0; ; n++) if (partitionOf(String(n), PARTITIONS) === partition) return String(n);
});

it('a hundred producers share six connections, and what befalls one befalls no other', async () => {
  const [broker] = inject('brokers');
  const proxy = await KafkaProxy.listen(broker!);
  onTestFinished(() => proxy.close());
  const topic = `shared-${randomUUID()}`;
  const direct = new Kafka({ brokers: [broker!], logLevel: logLevel.NOTHING });
  await createTopic(direct, { topic, numPartitions: PARTITIONS });
  const kafka = new Kafka({
    brokers: [proxy.address],
    logLevel: logLevel.NOTHING,
    requestTimeout: REQUEST_TIMEOUT_MS,
  });
  const connections = new Connections(kafka, MOST);
  onTestFinished(() => connections.close());
  const idOf = (n: number) => `${topic}-${n}`;
  const open = (n: number, own?: ProducerIdentity) =>
    openKafkaProducer({
      ...{ kafka, connections, transactionalId: idOf(n), previousIdentity: own },
      partitions: new Map([[topic, PARTITIONS]]),
    });
  const page = (value: string): Message[] =>
    KEYS.map((key) => ({ topic, key, value: Buffer.from(value) }));
  const expected: string[] = [];
  const commit = async (n: number, round: string) => {
    await sinks[n]!.commit(page(`${n} ${round}`));
    await sinks[n]!.awaitVisible();
    expected.push(`${n} ${round}`);
  };

  const all = Array.from({ length: PRODUCERS }, (_, n) => n);
  const sinks = await Promise.all(all.map((n) => open(n)));
  for (const round of ['first', 'second']) await Promise.all(all.map((n) => commit(n, round)));
  expect(proxy.tcp.accepted).toBe(MOST);

  const [slow, closed] = [7, 13];
  let letGo = () => undefined as void;
  const isOver = new Promise<void>((resolve) => (letGo = resolve));
  const ofProducer = (n: number) =>
    proxy.strike(
      { api: 'Produce', where: ({ id }) => id === idOf(n) },
      holdRequest(() => isOver),
    );
  const [late, left] = [ofProducer(slow), ofProducer(closed)];
  const failed = commit(closed, 'third').catch((error: unknown) => error);
  const others = all.filter((n) => n !== closed).map((n) => commit(n, 'third'));
  await Promise.all([late.begun, left.begun]);
  const { producer } = sinks[closed]!;
  await sinks[closed]!.close();
  expect(await failed).toMatchObject({ code: 'COMMIT_FAILED' });
  sinks[closed] = await open(closed, producer);
  await Promise.all([...others, commit(closed, 'fourth')]);
  letGo(); // what the closed one has sent arrives, and what was given up
  await Promise.all([late.done, left.done]);
  await Promise.all(all.map((n) => commit(n, 'last')));

  await expect.poll(() => proxy.tcp.connections.length).toBeLessThanOrEqual(MOST);
  const found = new Map<number, string[]>();
  for (const { partition, value } of await tailOf(direct, topic))
    found.set(partition, [...(found.get(partition) ?? []), String(value)]);
  expect(found.size).toBe(PARTITIONS);
  for (const values of found.values()) expect(values.toSorted()).toEqual(expected.toSorted());
  await Promise.all(sinks.map((sink) => sink.close()));
});

it('the six lists of a service and its ledger share them', async () => {
  const [broker] = inject('brokers');
  const proxy = await KafkaProxy.listen(broker!);
  onTestFinished(() => proxy.close());
  const sandbox = await sandboxForTest({ changesPerSecond: 5 });
  const service = cliForTest(['run'], {
    ...settings(sandbox, `shared-${randomUUID()}`, folderForTest()),
    KAFKA_BROKERS: proxy.address,
    QUOTA_PER_MINUTE: '1000',
    LOGIN_QUOTA_PER_MINUTE: '1000',
  });
  for (const resource of RESOURCES) await firstReadDone(service, resource);
  // Two read the topic of signals: one for its metadata.
  await expect.poll(() => proxy.tcp.connections.length).toBeLessThanOrEqual(MOST + 2);
  expect(await service.end('SIGTERM')).toBe(0);
});
