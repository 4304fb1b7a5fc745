import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { settingsFor, tells } from '../integration/support/all-lists.ts';
import { truthOf } from '../integration/support/checker.ts';
import { runExample } from '../integration/examples/run-example.ts';
import { follow } from '../integration/support/follow.ts';
import { TIMEOUT } from '../integration/support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
} from '../integration/support/service.ts';
import { cachedJars } from './cache.ts';
import { compactedCopy } from './compacted-copy.ts';

const PREFIX = 'tables';
const COMPACTED = 'compacted';
const run = promisify(execFile);
const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** Packages that Flink reads by reflection. */
const OPENED = ['java.lang', 'java.time', 'java.util', 'java.util.concurrent'];

interface Order {
  readonly order_number: number;
  readonly payment_status: string | null;
  readonly fulfillment_status: string | null;
  readonly total_price: string | number | null;
  readonly updated_at: string;
}

/** The orders of the API after inserts, changes, deletions, a new field and a resync. */
let orders: readonly Order[];
it('orders are written, and their topic is copied and compacted', TIMEOUT, async () => {
  const sandbox = await sandboxForTest({ records: { orders: 200 } });
  await writeHistory(sandbox);
  const truth = [...truthOf(sandbox, 'orders').values()] as Order[];
  orders = truth.toSorted((a, b) => a.order_number - b.order_number);
});

async function writeHistory(sandbox: Sandbox): Promise<void> {
  const env = {
    ...settingsFor(sandbox, PREFIX, ['orders']),
    ...{ SWEEP_INTERVAL_MS: '5000', DELETE_PROOF_MS: '0' },
  };
  const service = cliForTest(['run'], env);
  await firstReadDone(service);
  const events = follow(`${PREFIX}.orders`);
  const agree = () => tells(events, () => truthOf(sandbox, 'orders'));
  sandbox.changeSome(100);
  for (const key of [...sandbox.truth.keys('orders')].slice(0, 5)) sandbox.remove('orders', key);
  for (let nth = 0; nth < 5; nth++) sandbox.create('orders');
  await agree();
  sandbox.addField('orders', 'gift_wrapping', 'paper');
  sandbox.changeSome(100);
  await agree();
  // Before the resync, so that the newest events of most orders are updates.
  await compactedCopy(`${PREFIX}.orders`, `${COMPACTED}.orders`);
  await cliForTest(['resync', '--resource', 'orders'], env).succeeded();
  expect(await service.end('SIGTERM')).toBe(0);
}

const topics = [
  ['the topic', PREFIX],
  ['a compacted copy', COMPACTED],
] as const;

it.each(topics)(
  'Flink SQL has the orders of the API as a table, from %s',
  TIMEOUT,
  async (_, prefix) => {
    const jars = cachedJars('flink-2.0.0', 'flink-pom.xml');
    const sql = readFileSync(fileOf('../../deploy/flink/orders.sql'), 'utf8')
      .replace('wine.orders', `${prefix}.orders`)
      .replace('localhost:9092', inject('brokers')[0]!)
      .replace('http://localhost:8081/apis/ccompat/v7', inject('registryUrl'));
    const file = join(folderForTest(), 'orders.sql');
    writeFileSync(file, sql);
    const opened = OPENED.map((name) => `--add-opens=java.base/${name}=ALL-UNNAMED`);
    const program = ['-cp', join(jars, '*'), fileOf('OrdersQuery.java'), file];
    const { stdout } = await run('java', [...opened, '-Xmx1g', ...program], { maxBuffer: 1e8 });
    const [count, ...rows] = stdout.trim().split('\n');
    const found = rows.map((row) => row.split('\t'));
    expect(
      found.map(([number, payment, fulfillment, total, updated]) => [
        ...[number, payment, fulfillment, Number(total)],
        Date.parse(`${updated!}Z`),
      ]),
    ).toEqual(
      orders.map((order) => [
        String(order.order_number),
        String(order.payment_status),
        String(order.fulfillment_status),
        Number(order.total_price),
        Date.parse(order.updated_at),
      ]),
    );
    expect(count).toBe(String(orders.length));
  },
);

const consumers = topics.flatMap(
  ([from, prefix]) =>
    [
      ['Python', from, prefix, pythonExample],
      ['Go', from, prefix, goExample],
    ] as const,
);

it.each(consumers)(
  '%s has the statuses and totals of all orders, from %s',
  TIMEOUT,
  async (_, __, prefix, example) => {
    const consumer = example(prefix);
    const wanted = new Map(
      orders.map((order) => [
        String(order.order_number),
        `${order.payment_status ?? '-'} ${Number(order.total_price).toFixed(2)}`,
      ]),
    );
    try {
      await expect
        .poll(() => latest(consumer.lines), { timeout: 60_000, interval: 500 })
        .toEqual(wanted);
    } finally {
      expect(await consumer.end('SIGTERM')).toBe(0);
    }
  },
);

function pythonExample(prefix: string) {
  return runExample('06-python/consumer.py', prefix, { program: process.env.PYTHON ?? 'python3' });
}

function goExample(prefix: string) {
  const program = join(folderForTest(), 'consumer');
  execFileSync('go', ['build', '-o', program, '.'], { cwd: fileOf('../../examples/08-go') });
  return runExample('08-go/main.go', prefix, { program });
}

/** Status and total of each order, by the lines that an example prints: "KEY OP FROM -> TO TOTAL PATHS" or "KEY tombstone". */
function latest(lines: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const line of lines) {
    const [key, op, , , to, total] = line.split(' ') as [string, string, ...string[]];
    if (op === 'tombstone' || op === 'd') found.delete(key);
    else found.set(key, `${to} ${total}`);
  }
  return found;
}
