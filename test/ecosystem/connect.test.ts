import { execFileSync } from 'node:child_process';
import { chownSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, inject, it, vi } from 'vitest';
import { freeLoopbackPorts } from '../../src/devstack/loopback-ports.ts';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { truthOf } from '../integration/support/checker.ts';
import { allReady } from '../integration/support/all-lists.ts';
import { TIMEOUT } from '../integration/support/running-test.ts';
import {
  cliForTest,
  folderForTest,
  sandboxForTest,
  settings,
} from '../integration/support/service.ts';
import { linesOf } from '../integration/support/all-lists.ts';
import { cachedJars } from './cache.ts';
import { isSameValue } from './column.ts';
import { compactedCopy } from './compacted-copy.ts';
import { start } from './program.ts';

const PREFIX = 'connect';
const COMPACTED = 'connect-compacted';
const DEPLOY = fileURLToPath(new URL('../../deploy/connect/', import.meta.url));
/** PostgreSQL refuses to run as root. */
const NOBODY = 65_534;

type Row = Readonly<Record<string, unknown>>;

let jars: string;
beforeAll(() => {
  jars = cachedJars('connect-debezium-3.3.1', 'connect-pom.xml');
}, 300_000);

/** A database `wine` for the test; resolves with its port. */
async function startPostgres(): Promise<number> {
  const folder = folderForTest();
  const [port] = await freeLoopbackPorts(1);
  const uid = process.getuid?.() === 0 ? NOBODY : undefined;
  if (uid !== undefined) chownSync(folder, uid, uid);
  const ids = uid === undefined ? {} : { uid, gid: uid };
  const data = join(folder, 'data');
  const how = { ...ids, cwd: '/', stdio: 'ignore' as const };
  execFileSync('initdb', ['--no-sync', '-E', 'UTF8', '-U', 'wine', '-A', 'trust', '-D', data], how);
  const log = join(folderForTest(), 'postgres.log');
  writeFileSync(log, '');
  const listen = ['-p', String(port), '-h', '127.0.0.1', '-k', folder];
  start('postgres', ['-D', data, ...listen], { log, ...(uid !== undefined && { uid }) });
  const create = () => psql(port!, 'postgres', 'create database wine');
  await vi.waitFor(create, { timeout: 60_000, interval: 200 });
  return port!;
}

function psql(port: number, database: string, sql: string): string {
  const args = ['-h', '127.0.0.1', '-p', String(port), '-U', 'wine', '-d', database, '-Atc', sql];
  return execFileSync('psql', args, { encoding: 'utf8', stdio: 'pipe', maxBuffer: 1e9 });
}

function rows(port: number, prefix: string, resource: string): readonly Row[] {
  const table = `"${prefix}_${resource}"`;
  return JSON.parse(
    psql(port, 'wine', `select coalesce(json_agg(t), '[]') from ${table} t`),
  ) as readonly Row[];
}

/** A file of deploy/connect with these texts in place of others. */
function configured(name: string, texts: Readonly<Record<string, string>>): string {
  let text = readFileSync(join(DEPLOY, name), 'utf8');
  for (const [from, to] of Object.entries(texts)) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  const file = join(folderForTest(), name);
  writeFileSync(file, text);
  return file;
}

/** Starts a worker with a sink into the database `wine` for the topics of a prefix; resolves with the path of its log. */
async function startConnect(prefix: string, port: number): Promise<string> {
  const worker = configured('worker.properties', {
    'localhost:9092': inject('brokers')[0]!,
    'http://localhost:8081': new URL(inject('registryUrl')).origin,
    '/var/lib/kafka-connect/offsets': join(folderForTest(), 'offsets'),
  });
  const [rest] = await freeLoopbackPorts(1);
  writeFileSync(worker, `listeners=http://127.0.0.1:${rest!}\n`, { flag: 'a' });
  const sink = configured('postgresql.properties', {
    'name=cellarstream-postgresql': `name=${prefix}`,
    'wine\\\\.(': `${prefix}\\\\.(`,
    'wine.': `${prefix}.`,
    'localhost:5432': `127.0.0.1:${port}`,
  });
  const log = join(folderForTest(), 'connect.log');
  const main = ['org.apache.kafka.connect.cli.ConnectStandalone', worker, sink];
  start('java', ['-Xmx512m', '-cp', join(jars, '*'), ...main], { log });
  return log;
}

/** Expects each table to have the records of the API, with the values of all columns. */
function expectTruth(port: number, prefix: string, sandbox: Sandbox): void {
  for (const resource of RESOURCES) {
    const truth = truthOf(sandbox, resource) as Map<string, Row>;
    const found = rows(port, prefix, resource);
    expect([resource, found.length]).toEqual([resource, truth.size]);
    for (const { nulls, ...row } of found) {
      expect(nulls).toBeInstanceOf(Array);
      const record = truth.get(String(row.order_number ?? row.id ?? row.sku));
      expect(record, JSON.stringify(row)).toBeDefined();
      const wrong = Object.entries(row).filter(
        ([name, value]) => !isSameValue(value, record![name]),
      );
      expect(wrong).toEqual([]);
    }
  }
}

it(
  'has the lists as tables of PostgreSQL, through inserts, changes, deletions, a new field and a resync, and from compacted copies',
  TIMEOUT,
  async () => {
    const sandbox = await sandboxForTest({ records: { orders: 200 } });
    const env = {
      ...settings(sandbox, PREFIX, folderForTest()),
      ...{ KEY_FORMAT: 'avro', RESOURCES: RESOURCES.join(), SWEEP_INTERVAL_MS: '5000' },
    };
    const service = cliForTest(['run'], env);
    const port = await startPostgres();
    await allReady(service);
    await vi.waitUntil(() => linesOf(service, 'ready').length >= RESOURCES.length, {
      timeout: 60_000,
    });
    const log = await startConnect(PREFIX, port);
    const agree = (prefix = PREFIX) =>
      vi.waitFor(() => expectTruth(port, prefix, sandbox), { timeout: 90_000, interval: 1_000 });

    await agree();
    sandbox.changeSome(100);
    for (const resource of RESOURCES) {
      const [first] = sandbox.truth.keys(resource);
      sandbox.remove(resource, first!);
      sandbox.create(resource);
    }
    await agree();

    sandbox.addField('customers', 'tier', 'gold');
    sandbox.changeSome(100);
    await agree();
    for (const list of RESOURCES) await compactedCopy(`${PREFIX}.${list}`, `${COMPACTED}.${list}`);
    const resync = cliForTest(['resync', '--resource', 'customers'], env);
    await resync.succeeded();
    await agree();
    expect(rows(port, PREFIX, 'customers').some(({ tier }) => tier === 'gold')).toBe(true);
    const logOfCopy = await startConnect(COMPACTED, port);
    await agree(COMPACTED);
    for (const file of [log, logOfCopy]) expect(readFileSync(file, 'utf8')).not.toContain('ERROR');
  },
);
