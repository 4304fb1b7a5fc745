import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, it, vi } from 'vitest';
import { createTopic } from '../integration/support/created-topic.ts';
import { kafka, settingsFor } from '../integration/support/all-lists.ts';
import { kafkajsRead } from '../integration/support/kafkajs-read.ts';
import { TIMEOUT } from '../integration/support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
} from '../integration/support/service.ts';
import { readTopic } from '../integration/support/topic-reader.ts';
import { cachedJars } from './cache.ts';
import { start } from './program.ts';

const PREFIX = 'streams';
const PROGRAM = fileURLToPath(new URL('OrdersJoin.java', import.meta.url));

it(
  'each status change finds its order with that status, by a join of Kafka Streams',
  TIMEOUT,
  async () => {
    const jars = cachedJars('kafka-streams-4.1.1', 'streams-pom.xml');
    const [broker] = inject('brokers') as [string];
    const registryUrl = inject('registryUrl');
    const sandbox = await sandboxForTest({ records: { orders: 300 } });
    const service = cliForTest(['run'], { ...settingsFor(sandbox, PREFIX), RESOURCES: 'orders' });
    await firstReadDone(service);
    await createTopic(kafka(), { topic: `${PREFIX}.joined`, numPartitions: 1 });
    const log = join(folderForTest(), 'streams.log');
    const args = [broker, registryUrl, PREFIX, folderForTest()];
    const join_ = start('java', ['-cp', join(jars, '*'), PROGRAM, ...args], { log });
    sandbox.setRate(50);
    await vi.waitUntil(
      async () => {
        const changes = await readTopic([broker], registryUrl, `${PREFIX}.order-status-changes`);
        return changes.length > 500;
      },
      { timeout: 120_000, interval: 1_000 },
    );
    sandbox.setRate(0);
    expect(await service.end('SIGTERM')).toBe(0);

    const changes = await readTopic([broker], registryUrl, `${PREFIX}.order-status-changes`);
    const ofOrders = changes.filter(
      ({ value }) => (value as { subject: string }).subject === 'order',
    );
    expect(ofOrders.length).toBeGreaterThan(50);
    const isAll = (records: readonly unknown[]) =>
      records.length >= ofOrders.length || join_.exitCode !== null;
    const joined = await kafkajsRead(broker, `${PREFIX}.joined`, isAll);
    const lines = joined.map(({ value }) => value!.toString().split(' '));
    expect(
      lines.filter(([, , to, found]) => to !== found),
      readFileSync(log, 'utf8').slice(-500),
    ).toEqual([]);
    expect(new Set(lines.map(([id]) => id)).size).toBe(ofOrders.length);
  },
);
