import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, it, vi } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { kafka, messagesOf, settingsFor, tells } from '../integration/support/all-lists.ts';
import { truthOf } from '../integration/support/checker.ts';
import { createTopic } from '../integration/support/created-topic.ts';
import { follow } from '../integration/support/follow.ts';
import { TIMEOUT } from '../integration/support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
} from '../integration/support/service.ts';
import { readTopic } from '../integration/support/topic-reader.ts';
import { cachedJars } from './cache.ts';
import { compactedCopy } from './compacted-copy.ts';
import { start } from './program.ts';

const PREFIX = 'streams';
const COMPACTED = 'streams-compacted';
const PROGRAM = fileURLToPath(new URL('OrdersJoin.java', import.meta.url));

it(
  'joins each status change with its order in that status, and has the orders of the API as a table',
  TIMEOUT,
  async () => {
    const [broker] = inject('brokers') as [string];
    const registryUrl = inject('registryUrl');
    const sandbox = await sandboxForTest({ records: { orders: 300 } });
    const env = {
      ...settingsFor(sandbox, PREFIX, ['orders']),
      ...{ SWEEP_INTERVAL_MS: '5000', DELETE_PROOF_MS: '0' },
    };
    const service = cliForTest(['run'], env);
    await firstReadDone(service);
    await createTopic(kafka(), { topic: `${PREFIX}.joined`, numPartitions: 1 });
    const events = follow(`${PREFIX}.orders`);
    const agree = () => tells(events, () => truthOf(sandbox, 'orders'));
    const log = startJoin(PREFIX);

    sandbox.setRate(50);
    const changed = async () =>
      (await readTopic([broker], registryUrl, `${PREFIX}.order-status-changes`)).length > 500;
    await vi.waitUntil(changed, { timeout: 120_000, interval: 1_000 });
    sandbox.setRate(0);
    for (const key of [...sandbox.truth.keys('orders')].slice(0, 5)) sandbox.remove('orders', key);
    for (let nth = 0; nth < 5; nth++) sandbox.create('orders');
    await agree();
    sandbox.addField('orders', 'gift_wrapping', 'paper');
    sandbox.changeSome(100);
    await agree();
    await compactedCopy(`${PREFIX}.orders`, `${COMPACTED}.orders`);
    await cliForTest(['resync', '--resource', 'orders'], env).succeeded();
    expect(await service.end('SIGTERM')).toBe(0);

    const changes = await readTopic([broker], registryUrl, `${PREFIX}.order-status-changes`);
    const ofOrders = changes.filter(
      ({ value }) => (value as { subject: string }).subject === 'order',
    );
    expect(ofOrders.length).toBeGreaterThan(50);
    await vi.waitFor(
      async () => {
        const joined = await messagesOf(`${PREFIX}.joined`);
        const lines = joined.map(({ value }) => value!.toString().split(' '));
        expect(
          lines.filter(([, , to, found]) => to !== found),
          readFileSync(log, 'utf8').slice(-500),
        ).toEqual([]);
        expect(new Set(lines.map(([id]) => id)).size).toBe(ofOrders.length);
      },
      { timeout: 60_000, interval: 1_000 },
    );
    await hasTable(PREFIX, sandbox);

    await createTopic(kafka(), { topic: `${COMPACTED}.order-status-changes`, numPartitions: 1 });
    await createTopic(kafka(), { topic: `${COMPACTED}.joined`, numPartitions: 1 });
    startJoin(COMPACTED);
    await hasTable(COMPACTED, sandbox);
  },
);

/** Starts the program; returns the path of its log. */
function startJoin(prefix: string): string {
  const jars = cachedJars('kafka-streams-4.1.1', 'streams-pom.xml');
  const log = join(folderForTest(), 'streams.log');
  const args = [inject('brokers')[0]!, inject('registryUrl'), prefix, folderForTest()];
  start('java', ['-cp', join(jars, '*'), PROGRAM, ...args], { log });
  return log;
}

/** Waits until the table of the program has the statuses of all orders. */
async function hasTable(prefix: string, sandbox: Sandbox): Promise<void> {
  const orders = [...truthOf(sandbox, 'orders')] as [string, Record<string, unknown>][];
  const wanted = new Map(
    orders.map(([key, order]) => [
      key,
      `${String(order.payment_status)} ${String(order.fulfillment_status)}`,
    ]),
  );
  await vi.waitFor(
    async () => {
      const table = new Map<string, string>();
      for (const { key, value } of await messagesOf(`${prefix}-join-statuses-changelog`)) {
        if (value) table.set(String(key), value.toString());
        else table.delete(String(key));
      }
      expect(table).toEqual(wanted);
    },
    { timeout: 60_000, interval: 1_000 },
  );
}
