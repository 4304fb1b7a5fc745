import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { expect, it, onTestFinished, vi } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { clusterOf, withoutIdleChecks } from '../../../src/kafka/client/kafkajs-inner.ts';
import { openKafka } from '../../../src/sinks/open-kafka.ts';
import { checkServers, kafkaOf, startCluster } from '../../sinks/producer/on-scripted-cluster.ts';
import type { ScriptedCluster } from '../../support/scripted-cluster.ts';

checkServers();

const OPTIONS = { metadataMaxAge: 1, allowAutoTopicCreation: false } as const;
const A_FUNCTION = expect.any(Function) as unknown;
const { Kafka: KafkaJs, logLevel } = kafkajs;
const kafka = new KafkaJs({
  brokers: ['first:9092', 'second:9093'],
  clientId: 'c',
  logLevel: logLevel.NOTHING,
});

it('holds kafkajs at the version whose inner parts are known', () => {
  const { version } = createRequire(import.meta.url)('kafkajs/package.json') as { version: string };
  expect(version).toMatch(/^2\.2\./);
  const own = JSON.parse(readFileSync('package.json', 'utf8')) as {
    dependencies: Record<string, string>;
  };
  expect(own.dependencies.kafkajs).toMatch(/^~2\.2\./);
});

it('finds all that is taken out of kafkajs', async () => {
  const cluster = clusterOf(kafka, OPTIONS);
  expect(cluster).toMatchObject({
    connect: A_FUNCTION,
    disconnect: A_FUNCTION,
    addTargetTopic: A_FUNCTION,
    refreshMetadataIfNecessary: A_FUNCTION,
    findTopicPartitionMetadata: A_FUNCTION,
    findBroker: A_FUNCTION,
    rootLogger: { namespace: A_FUNCTION },
  });
  const connectionPool = await cluster.connectionPoolBuilder.build({ host: 'h', port: 1 });
  expect(connectionPool).toMatchObject({
    host: 'h',
    port: 1,
    send: A_FUNCTION,
  });
  const broker = cluster.brokerPool.createBroker({ connectionPool, logger: cluster.rootLogger });
  expect(broker.connectionPool).toBe(connectionPool);
  expect(broker).toMatchObject({ connect: A_FUNCTION });
  const [connection] = connectionPool.pool;
  expect(connection).toMatchObject({
    send: A_FUNCTION,
    isConnected: A_FUNCTION,
    disconnect: A_FUNCTION,
    rejectRequests: A_FUNCTION,
  });
  expect(connection.isConnected()).toBe(false);
  expect(connection.reauthenticationThreshold).toBe(10_000);
  expect(connection.requestQueue.enforceRequestTimeout).toBe(true);
  expect(connection.authenticatedAt).toBeNull();
  expect(connection.sessionLifetime.toString()).toBe('0');
});

it('gets the brokers that the settings name in turn, and over again', async () => {
  const { connectionPoolBuilder } = clusterOf(kafka, OPTIONS);
  const found: string[] = [];
  for (let n = 0; n < 4; n++) {
    const { host, port } = await connectionPoolBuilder.build();
    found.push(`${host}:${port}`);
  }
  expect(found).toEqual(['first:9092', 'second:9093', 'first:9092', 'second:9093']);
});

it('looks for requests that wait where there are any, not a thousand times a second', async () => {
  const { connectionPoolBuilder } = clusterOf(kafka, OPTIONS);
  const [connection] = (await connectionPoolBuilder.build({ host: 'h', port: 1 })).pool;
  const { requestQueue } = connection;
  const kafkajsOwn = Object.getPrototypeOf(requestQueue) as typeof requestQueue;
  const timers = vi.spyOn(globalThis, 'setTimeout').mockReturnValue(0 as unknown as NodeJS.Timeout);
  try {
    kafkajsOwn.scheduleCheckPendingRequests.call(requestQueue);
    expect(timers).toHaveBeenCalledTimes(1); // and again whenever that has run
    requestQueue.scheduleCheckPendingRequests();
    expect(timers).toHaveBeenCalledTimes(1);
    Object.assign(requestQueue, { pending: ['a request'] });
    requestQueue.scheduleCheckPendingRequests();
    expect(timers).toHaveBeenCalledTimes(2);
  } finally {
    timers.mockRestore();
  }
});

const serviceKafkaOf = ({ brokers }: { readonly brokers: readonly string[] }) =>
  openKafka(
    loadConfig({ env: { KAFKA_BROKERS: brokers.join() }, cwd: '/nonexistent', needs: ['kafka'] }),
  );

it.each([
  ['whose Kafka is spared', (cluster: ScriptedCluster) => withoutIdleChecks(kafkaOf(cluster))],
  ['of a service', serviceKafkaOf],
])('spares the connections of admins and consumers the same: %s', async (_, spared) => {
  const cluster = await startCluster();
  const admin = spared(cluster).admin();
  onTestFinished(() => admin.disconnect());
  await admin.connect();
  const set = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => set.mockRestore());
  await pause(100);
  expect(set).not.toHaveBeenCalled();
});

it('takes no other kafkajs', () => {
  expect(() => clusterOf({} as Kafka, OPTIONS)).toThrow(TypeError);
  expect(() => withoutIdleChecks({} as Kafka)).toThrow(TypeError);
  const createCluster = Symbol('private:Kafka:createCluster');
  const other = Object.assign({} as Kafka, { [createCluster]: 'no function' });
  expect(() => clusterOf(other, OPTIONS)).toThrow(/kafkajs 2\.2/);
});
