import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';
import { follow } from '../integration/support/follow.ts';
import { settingsFor, tells } from '../integration/support/all-lists.ts';
import { truthOf } from '../integration/support/checker.ts';
import { TIMEOUT } from '../integration/support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
} from '../integration/support/service.ts';
import { cachedJars } from './cache.ts';

const PREFIX = 'flink';
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

it(
  'a table of Flink SQL has the orders of the API, after changes, deletions and a resync',
  TIMEOUT,
  async () => {
    const jars = cachedJars('flink-2.0.0', 'flink-pom.xml');
    const sandbox = await sandboxForTest({ records: { orders: 200 } });
    const env = {
      ...settingsFor(sandbox, PREFIX),
      ...{ RESOURCES: 'orders', SWEEP_INTERVAL_MS: '5000', DELETE_PROOF_MS: '0' },
    };
    const service = cliForTest(['run'], env);
    await firstReadDone(service);
    const events = follow(`${PREFIX}.orders`);
    sandbox.changeSome(100);
    for (const key of [...sandbox.truth.keys('orders')].slice(0, 5)) sandbox.remove('orders', key);
    await tells(events, () => truthOf(sandbox, 'orders'));
    await cliForTest(['resync', '--resource', 'orders'], env).succeeded();
    expect(await service.end('SIGTERM')).toBe(0);

    const sql = readFileSync(fileOf('../../deploy/flink/orders.sql'), 'utf8')
      .replace('wine.orders', `${PREFIX}.orders`)
      .replace('localhost:9092', inject('brokers')[0]!)
      .replace('http://localhost:8081/apis/ccompat/v7', inject('registryUrl'));
    const file = join(folderForTest(), 'orders.sql');
    writeFileSync(file, sql);
    const opened = OPENED.map((name) => `--add-opens=java.base/${name}=ALL-UNNAMED`);
    const program = ['-cp', join(jars, '*'), fileOf('OrdersQuery.java'), file];
    const { stdout } = await run('java', [...opened, '-Xmx1g', ...program], { maxBuffer: 1e8 });
    const found = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('\t'));
    const orders = [...truthOf(sandbox, 'orders').values()] as Order[];
    const wanted = orders
      .toSorted((a, b) => a.order_number - b.order_number)
      .map((order) => [
        String(order.order_number),
        String(order.payment_status),
        String(order.fulfillment_status),
        Number(order.total_price),
        Date.parse(order.updated_at),
      ]);
    expect(
      found.map(([number, payment, fulfillment, total, updated]) => [
        ...[number, payment, fulfillment, Number(total)],
        Date.parse(`${updated!}Z`),
      ]),
    ).toEqual(wanted);
  },
);
