import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { count, lastValueFrom, Subject, tap } from 'rxjs';
import { describe, expect, inject, it, vi } from 'vitest';
import type { CheckedCertificate } from '../../src/consumers/check-certificate.ts';
import { verifyCommand } from '../../src/commands/verify.ts';
import type { VerifyFlags } from '../../src/commands/verify.ts';
import type { Resource } from '../../src/description/description.ts';
import { replay } from '../../src/consumers/replay.ts';
import { subscribeGroup } from '../../src/consumers/subscribe-group.ts';
import { table } from '../../src/consumers/table.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { kafkaSignals } from '../../src/sinks/signals/kafka-signals.ts';
import { parseSignal, signalMessage } from '../../src/sinks/signals/signals.ts';
import type { CertifyRequest } from '../../src/sinks/signals/signals.ts';
import { withAdmin } from '../support/with-admin.ts';
import { runCli } from './support/cli.ts';
import { commandHere } from './support/command-here.ts';
import { certifiedOrders, clientsForTest } from './support/certified-orders.ts';
import { deleteRecords } from './support/deleted-records.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import { numbers, writtenTopic } from './support/written-topic.ts';
import type { Clients } from './support/written-topic.ts';

const connectionsOf = (prefix: string) => ({
  KAFKA_BROKERS: inject('brokers').join(','),
  SCHEMA_REGISTRY_URL: inject('registryUrl'),
  TOPIC_PREFIX: prefix,
});

/** The `verify` command in this process. */
async function verify(
  prefix: string,
  resources: readonly Resource[],
  flags: Partial<VerifyFlags> = {},
) {
  const { exit, stdout, stderr } = await commandHere(
    () => verifyCommand(resources, { timeout: 600, ...flags }),
    connectionsOf(prefix),
  );
  return { exit, lines: stdout.split('\n').filter(Boolean), stderr };
}

/** `cellarstream verify ARGS` as a process, to its end. */
async function verifyCli(prefix: string, ...args: string[]) {
  const cli = runCli(['verify', ...args], connectionsOf(prefix));
  const exit = await cli.ended;
  return { exit, lines: cli.stdout().split('\n').filter(Boolean), stderr: cli.stderr() };
}

/** Orders that were created, changed and deleted, in two partitions. */
async function someOrders(clients: Clients, prefix: string, settings = {}) {
  const orders = await certifiedOrders(clients, prefix, settings);
  await orders.write(...numbers(1, 30));
  await orders.write(...numbers(5, 12));
  await orders.delete(7);
  await orders.delete(8);
  return orders;
}

/** Without it brokers delete nothing of a compacted topic. */
const DELETING = { 'cleanup.policy': 'compact,delete' };

describe('verify', () => {
  it('finds a topic as it was certified, whatever came since', async () => {
    const orders = await someOrders(clientsForTest(), 'verify-ok');
    await orders.certify({ number: 1, records: 1 });
    await orders.certify({ rejected: 2, read: 28, total_records: 30 });
    await orders.write(1, 2, 40);
    await orders.delete(9);
    const { exit, lines, stderr } = await verifyCli('verify-ok', 'orders');
    expect(lines).toEqual([
      'orders  ok  28 of 30  exact  2026-01-31T14:03:07.000Z  2 without a usable key',
    ]);
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });

    const json = await verifyCli('verify-ok', 'orders', '--json');
    expect(JSON.parse(json.lines[0]!)).toMatchObject({
      ...{ account: 'default', resource: 'orders', checked: 'agrees', why: null, records: 28 },
      certificate: { number: 2, total_records: 30, proof: 'exact' },
      partitions: [
        { partition: 0, checked: 'agrees', certified: { records: 14 }, found: { records: 14 } },
        { partition: 1, checked: 'agrees', certified: { records: 14 }, found: { records: 14 } },
      ],
      copy: null,
    });
    expect(json.exit).toBe(0);
  });

  it('says what it can not check: no certificate, no topic, no certificates at all', async () => {
    const clients = clientsForTest();
    const orders = await certifiedOrders(clients, 'verify-none');
    const none = await verify('verify-none', ['orders', 'customers']);
    expect(none.lines).toEqual([
      expect.stringMatching(/^orders +not checked +there is no certificate yet/),
      expect.stringMatching(/^customers +not checked +there is no topic verify-none.customers/),
    ]);
    expect(none.exit).toBe(1);
    await orders.certify({ resource: 'customers' });
    const gone = await verify('verify-none', ['customers']);
    expect(gone.lines).toEqual([
      expect.stringMatching(/^customers +not checked +there is no topic verify-none.customers/),
    ]);
    expect(gone.exit).toBe(1);
    const { exit, stderr, lines } = await verifyCli('verify-nowhere');
    expect(stderr).toMatch(/^cellarstream: there is no topic verify-nowhere.certificates: .*\n$/);
    expect([exit, lines]).toEqual([1, []]);
  });

  it('finds that events are gone: of a partition, by retention, from its end', async () => {
    const clients = clientsForTest();
    const orders = await someOrders(clients, 'verify-gone', DELETING);
    await orders.certify();
    await deleteRecords(clients.kafka, orders.topic, 1, '3');
    const some = await verify('verify-gone', ['orders']);
    expect(some.lines[0]).toMatch(/disagrees +26 of 28 .*partition 1 has 12 of 14 records/);
    await deleteRecords(clients.kafka, orders.topic, 1, '-1');
    const all = await verify('verify-gone', ['orders']);
    expect(all.lines[0]).toMatch(/disagrees +14 of 28 .*partition 1 has 0 of 14 records/);
    await orders.write(1, 3);
    await deleteRecords(clients.kafka, orders.topic, 1, '-1');
    const behind = await verify('verify-gone', ['orders']);
    expect(behind.lines[0]).toMatch(/not checked +\? of 28 .*partition 1 begins at \d+, after/);
    expect([some.exit, all.exit, behind.exit]).toEqual([1, 1, 1]);
  });

  it('finds that a topic was restored from an earlier copy', async () => {
    const clients = clientsForTest();
    const orders = await someOrders(clients, 'verify-restored');
    await orders.write(1);
    const certificate = await orders.certify();
    // The same certificate over a topic without the last event, which then goes on.
    const restored = await someOrders(clients, 'verify-earlier');
    await restored.certify({ partitions: certificate.partitions });
    const short = await verify('verify-earlier', ['orders']);
    expect(short.lines[0]).toMatch(/disagrees +\? of .*partition 1 ends at \d+, before/);
    await restored.write(3);
    const other = await verify('verify-earlier', ['orders']);
    expect(other.lines[0]).toMatch(
      /disagrees +28 of 28 .*partition 1 has 14 records .*other events/,
    );
    expect([short.exit, other.exit]).toEqual([1, 1]);
  });

  it('does not check what may be compacted, or has other partitions', async () => {
    const clients = clientsForTest();
    const soon = await someOrders(clients, 'verify-compacted', { 'min.compaction.lag.ms': '1' });
    await soon.certify();
    const { exit, lines } = await verify('verify-compacted', ['orders']);
    expect(lines[0]).toMatch(/not checked +\? of 28 .*min.compaction.lag.ms/);
    const wider = await someOrders(clients, 'verify-wider');
    await wider.certify();
    await withAdmin(clients.kafka, (admin) =>
      admin.createPartitions({ topicPartitions: [{ topic: wider.topic, count: 3 }] }),
    );
    const after = await verify('verify-wider', ['orders']);
    expect(after.lines[0]).toMatch(/not checked .*has 3 partitions, but the certificate counts 2/);
    expect([exit, after.exit]).toEqual([1, 1]);
  });

  it('holds a copy against certificate and topic, and names keys', async () => {
    const orders = await someOrders(clientsForTest(), 'verify-copy');
    await orders.certify();
    const atCertificate = new Map(orders.live);
    await orders.write(1, 2, 40);
    await orders.delete(9);
    const folder = folderForTest();
    const checked = async (rows: ReadonlyMap<string, number>) => {
      const file = join(folder, 'copy.csv');
      const text = [...rows].map(([key, sequence]) => `x,"${key}",${sequence}\r\n`).join('');
      writeFileSync(file, `other,key,sequence\r\n${text}`);
      const { exit, lines } = await verify('verify-copy', ['orders'], { file });
      return [exit, ...lines.slice(1).map((line) => line.replace(`${file}: `, ''))];
    };
    expect(await checked(atCertificate)).toEqual([0, 'ok, 28 rows']);
    expect(await checked(orders.live)).toEqual([0, 'ok, 28 rows']);
    const wrong = new Map(atCertificate).set('5', 5).set('7', 7).set('a b', 1);
    for (const key of numbers(11, 30)) wrong.delete(String(key));
    wrong.delete('9');
    wrong.delete('10');
    expect(await checked(wrong)).toEqual([
      1,
      expect.stringMatching(/^21 missing: (\d+, ){20}\.\.\.$/),
      '1 stale: 5',
      '2 too many: 7, "a b"',
    ]);

    const file = join(folder, 'none.csv');
    for (const [args, message] of [
      [['orders', '--file', file], /--file .*none.csv: ENOENT/],
      [['--file', file], /with --file, name exactly one list/],
      [['cellars'], /'cellars' is invalid/],
    ] as const) {
      const { exit, stderr } = await verifyCli('verify-copy', ...args);
      expect([exit, stderr]).toEqual([2, expect.stringMatching(message)]);
    }
    writeFileSync(file, 'id,sequence\n1,2\n');
    const unnamed = await verify('verify-copy', ['orders'], { file });
    expect([unnamed.exit, unnamed.stderr]).toEqual([2, expect.stringMatching(/the columns key/)]);
  });

  it('asks for a fresh certificate, and does not wait for ever', async () => {
    const clients = clientsForTest();
    const orders = await someOrders(clients, 'verify-fresh');
    await orders.certify();
    const { name } = await writtenTopic(clients, 'verify-fresh.signals', 1);
    const signals = kafkaSignals(clients, name);

    const alone = await verify('verify-fresh', ['orders'], { fresh: true, timeout: 1 });
    expect(alone.lines[0]).toMatch(/^orders +not checked +no fresh certificate within 1 s/);
    expect(alone.exit).toBe(1);

    const asked = new Promise<CertifyRequest>((resolve) => {
      signals
        .read({ from: new Map(), follow: true })
        .subscribe(({ messages }) =>
          messages
            .map(parseSignal)
            .forEach((signal) => signal.type === 'certify' && resolve(signal)),
        );
    });
    const first = await asked; // of the one that gave up
    const requests: CertifyRequest[] = [];
    const following = signals
      .read({ from: await signals.ends(), follow: true })
      .subscribe(({ messages }) =>
        messages.map(parseSignal).forEach((signal) => {
          if (signal.type === 'certify') requests.push(signal);
        }),
      );
    const done = verify('verify-fresh', ['orders'], { fresh: true });
    await vi.waitUntil(() => requests.length > 0, { timeout: 30_000 });
    expect(requests[0]!.id).not.toBe(first.id);
    await orders.write(50);
    const { number } = await orders.certify();
    const { id, account } = requests[0]!;
    await signals.send(
      signalMessage(name, {
        ...{ type: 'certify-ack', id, account, resource: 'orders', status: 'done' },
        ...{ number, message: null, at: new Date().toISOString() },
      }),
    );
    const { exit, lines } = await done;
    expect([exit, lines[0]]).toEqual([0, expect.stringMatching(/^orders +ok +29 of 29/)]);
    following.unsubscribe();
    await signals.close();
  });
});

it('verify agrees with a running service, and gets a fresh certificate of it', async () => {
  const sandbox = await sandboxForTest({ records: { orders: 60 } });
  const env = settings(sandbox, 'verify-service', folderForTest());
  const service = cliForTest(['run'], env);
  await firstReadDone(service);
  const first = await verifyCli('verify-service', 'orders', '--fresh', '--timeout', '60');
  expect(first.lines).toEqual([expect.stringMatching(/^orders +ok +60 of 60 +exact /)]);
  sandbox.remove('orders', [...sandbox.truth.keys('orders')][0]!);
  sandbox.create('orders');
  sandbox.create('orders');
  const { lines, exit } = await verifyCli('verify-service', 'orders', '--fresh', '--timeout', '60');
  expect(lines[0]).toMatch(/^orders +ok +6[12] of 6[12] /); // a deletion is proven by two readings
  expect(exit).toBe(0);
});

describe('a consumer', () => {
  it('hears of certificates when it has passed them, and whether it agrees', async () => {
    const clients = clientsForTest();
    const orders = await someOrders(clients, 'verify-table');
    await orders.certify();
    await orders.write(1);
    const told: CheckedCertificate[] = [];
    const held = table({
      ...clients,
      topic: topicsUnder('verify-table').orders,
      onCertificate: (checked) => told.push(checked),
    });
    const verdicts = () => told.map(({ certificate, checked }) => [certificate.number, checked]);
    await vi.waitUntil(() => told.length === 1, { timeout: 30_000 });
    await orders.certify();
    await orders.write(60);
    await orders.certify({ account: 'default', total_records: 1 });
    await vi.waitUntil(() => told.length === 3, { timeout: 30_000 });
    expect(verdicts()).toEqual([
      [1, 'agrees'],
      [2, 'agrees'],
      [3, 'agrees'],
    ]);
    const { partitions } = await orders.certify();
    const other = { ...partitions, 1: { ...partitions[1]!, digest: '0123456789abcdef' } };
    await orders.certify({ partitions: other });
    await vi.waitUntil(() => told.length === 5, { timeout: 30_000 });
    expect(verdicts().slice(3)).toEqual([
      [4, 'agrees'],
      [5, 'disagrees'],
    ]);
    expect(held.get('60')).toBeDefined();
    held.close();
  });

  it('is handed each by a group', async () => {
    const clients = clientsForTest();
    const orders = await someOrders(clients, 'verify-group');
    await orders.certify();
    await orders.certify();
    const told: number[] = [];
    const stop$ = new Subject<void>();
    const events = lastValueFrom(
      subscribeGroup(
        {
          ...{ ...clients, topic: orders.topic, groupId: 'verify-group', stop$ },
          onCertificate: ({ certificate }) => told.push(certificate.number),
        },
        () => undefined,
      ).pipe(count()),
    );
    await vi.waitUntil(() => told.length === 1, { timeout: 30_000 });
    await orders.certify();
    await vi.waitUntil(() => told.length === 2, { timeout: 30_000 });
    stop$.next();
    await events;
    expect(told).toEqual([2, 3]);
  });

  it('is handed the newest certificate by a replay that comes to its end', async () => {
    const clients = clientsForTest();
    const orders = await someOrders(clients, 'verify-replay');
    await orders.certify();
    const { number } = await orders.certify();
    await orders.certify({ resource: 'customers' });
    let events = 0;
    const told: (readonly [number, number])[] = [];
    await lastValueFrom(
      replay({
        ...clients,
        topic: orders.topic,
        onCertificate: ({ certificate }) => told.push([certificate.number, events]),
      }).pipe(tap(() => (events += 1))),
    );
    expect(told).toEqual([[number, events]]);
    expect(events).toBe(42);
  });
});
