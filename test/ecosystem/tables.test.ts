import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { Resource, Sandbox } from '../../src/sandbox/index.ts';
import { allReady, messagesOf, settingsFor, tells } from '../integration/support/all-lists.ts';
import { truthOf } from '../integration/support/checker.ts';
import { runExample } from '../integration/examples/run-example.ts';
import { follow } from '../integration/support/follow.ts';
import { TIMEOUT } from '../integration/support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest } from '../integration/support/service.ts';
import { cachedJars } from './cache.ts';
import { isSameValue } from './column.ts';
import { compactedCopy } from './compacted-copy.ts';

const PREFIX = 'tables';
const COMPACTED = 'compacted';
const STATUS_CHANGES = 'order_status_changes';
const run = promisify(execFile);
const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** Packages that Flink reads by reflection. */
const OPENED = ['java.lang', 'java.time', 'java.util', 'java.util.concurrent'];

type Row = Readonly<Record<string, unknown>>;

interface Table {
  readonly name: string;
  readonly count: number;
  readonly rows: readonly Row[];
}

/** The records of each list of the API, by key, after inserts, changes, deletions, new fields and a resync. */
let truth: ReadonlyMap<Resource, ReadonlyMap<string, Row>>;
it('all lists are written, and their topics are copied and compacted', TIMEOUT, async () => {
  const sandbox = await sandboxForTest({ records: { orders: 200 } });
  await writeHistory(sandbox);
  truth = new Map(
    RESOURCES.map((list) => [list, truthOf(sandbox, list) as ReadonlyMap<string, Row>]),
  );
});

async function writeHistory(sandbox: Sandbox): Promise<void> {
  const env = {
    ...settingsFor(sandbox, PREFIX),
    ...{ SWEEP_INTERVAL_MS: '5000', DELETE_PROOF_MS: '0' },
  };
  const service = cliForTest(['run'], env);
  await allReady(service);
  const events = new Map(RESOURCES.map((list) => [list, follow(`${PREFIX}.${list}`)]));
  const agree = () =>
    Promise.all(RESOURCES.map((list) => tells(events.get(list)!, () => truthOf(sandbox, list))));
  await agree();
  sandbox.changeSome(100);
  for (const list of RESOURCES) {
    const [first, second] = sandbox.truth.keys(list);
    for (const key of [first!, second!]) sandbox.remove(list, key);
    for (let nth = 0; nth < 3; nth++) sandbox.create(list);
  }
  await agree();
  sandbox.addField('orders', 'gift_wrapping', 'paper');
  sandbox.addField('customers', 'tier', 'gold');
  sandbox.changeSome(100);
  await agree();
  // Before the resync, so that the newest events of most records are updates.
  for (const list of [...RESOURCES, 'order-status-changes']) {
    await compactedCopy(`${PREFIX}.${list}`, `${COMPACTED}.${list}`);
  }
  await cliForTest(['resync'], env).succeeded();
  expect(await service.end('SIGTERM')).toBe(0);
}

const topics = [
  ['the topic', PREFIX],
  ['a compacted copy', COMPACTED],
] as const;

it.each(topics)(
  'Flink SQL has the lists of the API as tables, from %s',
  TIMEOUT,
  async (_, prefix) => {
    const jars = cachedJars('flink-2.0.0', 'flink-pom.xml');
    const sql = readFileSync(fileOf('../../deploy/flink/tables.sql'), 'utf8')
      .replaceAll("'wine.", `'${prefix}.`)
      .replaceAll('localhost:9092', inject('brokers')[0]!)
      .replaceAll('http://localhost:8081/apis/ccompat/v7', inject('registryUrl'));
    const file = join(folderForTest(), 'tables.sql');
    writeFileSync(file, sql);
    const opened = OPENED.map((name) => `--add-opens=java.base/${name}=ALL-UNNAMED`);
    const program = ['-cp', join(jars, '*'), fileOf('TablesQuery.java'), file];
    const { stdout } = await run('java', [...opened, '-Xmx1g', ...program], { maxBuffer: 1e9 });
    const tables = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Table);
    for (const { name, count, rows } of tables.filter((table) => table.name !== STATUS_CHANGES)) {
      const records = truth.get(name.replaceAll('_', '-') as Resource)!;
      expect([name, count, rows.length]).toEqual([name, records.size, records.size]);
      for (const row of rows) {
        const record = records.get(String(Object.values(row)[0]));
        expect(record, `${name}: ${JSON.stringify(row)}`).toBeDefined();
        const wrong = Object.entries(row).filter(
          ([column, value]) => !isSameValue(value, record![column]),
        );
        expect([name, wrong]).toEqual([name, []]);
      }
    }
    const changes = tables.find((table) => table.name === STATUS_CHANGES)!;
    expect(changes.count).toBe((await messagesOf(`${prefix}.order-status-changes`)).length);
    expect(changes.rows.every(({ field, observed_at: at }) => field !== null && at !== null)).toBe(
      true,
    );
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
      [...truth.get('orders')!.values()].map((order) => [
        String(order.order_number),
        `${(order.payment_status as string | null) ?? '-'} ${Number(order.total_price).toFixed(2)}`,
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
