import { cpSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import kafkajs, { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import { checkOrders } from './support/checker.ts';
import { createTopic } from './support/created-topic.ts';
import { publishedTruth } from './support/published-truth.ts';
import { scaled } from '../support/scale.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';

const MANY = scaled(4_000, 20_000);
const PATIENCE = { timeout: PATIENCE_MS, interval: 200 };
besideEachOther();

const ordersOf = (prefix: string) =>
  readTopic(inject('brokers'), inject('registryUrl'), `${prefix}.orders`);

/** The lines on stderr that are no log lines: what the command says to a person. */
const saidBy = (stderr: string) =>
  stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));

/** A loopback port on which nothing listens. */
async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe.concurrent('run', TIMEOUT, () => {
  it('stops cleanly in the middle of the initial snapshot, and goes on from there', async () => {
    const sandbox = await sandboxForTest({ records: { orders: MANY }, latencyMs: 100 });
    const env = { ...settings(sandbox, 'resume', folderForTest()), PAGE_SIZE: String(MANY / 40) };
    const first = cliForTest(['run'], env);
    await first.logged(({ event }) => event === 'first-read');
    const asked = performance.now();
    expect(await first.end('SIGTERM')).toBe(0);
    expect(performance.now() - asked).toBeLessThan(20_000);

    const second = cliForTest(['run'], env);
    await firstReadDone(second);
    expect(await second.end('SIGINT')).toBe(0);
    const events = await ordersOf('resume');
    expect(checkOrders(events, sandbox)).toMatchObject({ violations: [], ops: { r: MANY } });
    const offsets = sandbox.truth
      .requests('orders')
      .map(({ query }) => new URLSearchParams(query))
      .filter((query) => !query.has('modifiedFromDate'))
      .map((query) => Number(query.get('offset')));
    // What was asked for and not committed as it stopped is asked for again: one page, and nine ahead at most.
    expect(offsets.length).toBeLessThanOrEqual(new Set(offsets).size + 10);
  });

  it('reads its images back from Kafka when the state folder is lost, and publishes nothing again', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 3_000 } });
    const state = folderForTest();
    const env = settings(sandbox, 'lost-state', state);
    const first = cliForTest(['run'], env);
    await firstReadDone(first);
    await first.end('SIGTERM');
    rmSync(join(state, 'images.mdb'), { recursive: true }); // the request times stay: no minute's wait
    rmSync(join(state, 'images.mdb-lock'), { recursive: true, force: true });
    sandbox.setStatus(100_001, 'payment_status', 'refunded');

    const second = cliForTest(['run'], env);
    const { images } = await second.logged(({ event }) => event === 'restored');
    expect(images).toBe(3_000);
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'lost-state', sandbox);
    await second.end('SIGTERM');
    const { violations, ops } = checkOrders(await ordersOf('lost-state'), sandbox);
    expect({ violations, ops }).toEqual({ violations: [], ops: { r: 3_000, u: 1 } });
  });

  it('goes on from an older state folder, and from one that missed its last commits, without a repetition', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 500 } });
    const state = folderForTest();
    const env = settings(sandbox, 'older-state', state);
    const first = cliForTest(['run'], env);
    await firstReadDone(first);
    await first.end('SIGTERM');
    const older = folderForTest();
    cpSync(join(state, 'images.mdb'), join(older, 'images.mdb'), { recursive: true });

    const second = cliForTest(['run'], env);
    await second.logged(({ event }) => event === 'ready');
    for (let n = 0; n < 20; n++) sandbox.setStatus(100_001 + n, 'payment_status', 'refunded');
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'older-state', sandbox);
    await second.end('SIGKILL');
    // As if it had been killed after its commits and before its images were stored.
    rmSync(join(state, 'images.mdb'), { recursive: true });
    cpSync(join(older, 'images.mdb'), join(state, 'images.mdb'), { recursive: true });

    for (let n = 10; n < 30; n++) sandbox.setStatus(100_001 + n, 'payment_status', 'voided');
    const third = cliForTest(['run'], env);
    await third.logged(({ event, images }) => event === 'restored' && images === 20);
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'older-state', sandbox);
    await third.end('SIGTERM');
    expect(checkOrders(await ordersOf('older-state'), sandbox)).toMatchObject({
      violations: [],
      ops: { r: 500, u: 40 },
    });
  });

  it('reads with START_FROM what was modified since, and older orders once they change', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 1_000 } });
    const old = 100_001;
    const from = '2026-01-01T00:00:00.000Z';
    const recent = [...sandbox.truth.records('orders')].filter(
      (order) => (order as { updated_at: string }).updated_at >= from,
    ).length;
    const env = { ...settings(sandbox, 'start-from', folderForTest()), START_FROM: from };
    const service = cliForTest(['run'], env);
    await firstReadDone(service);
    sandbox.setStatus(old, 'payment_status', 'refunded');
    const found = async () =>
      (await ordersOf('start-from')).filter(({ key }) => key === String(old));
    await vi.waitFor(async () => expect(await found()).toHaveLength(1), PATIENCE);
    await service.end('SIGTERM');
    expect((await found())[0]?.value?.op).toBe('r'); // made before START_FROM: no news
    expect(
      await readTopic(inject('brokers'), inject('registryUrl'), 'start-from.order-status-changes'),
    ).toEqual([]);
    expect(await ordersOf('start-from')).toHaveLength(recent + 1);
    expect(recent).toBeGreaterThan(50);
  });

  it('is fenced by a second instance of the account: the first ends, and does not fight back', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 500 }, changesPerSecond: 20 });
    const [one, other] = [folderForTest(), folderForTest()];
    const sweeping = { SWEEP_INTERVAL_MS: '1000' }; // orders are deleted too
    const first = cliForTest(['run'], { ...settings(sandbox, 'fenced', one), ...sweeping });
    await firstReadDone(first);
    // With the request times of the first, the second need not wait a minute before it asks.
    cpSync(join(one, 'quota'), join(other, 'quota'), { recursive: true });
    const second = cliForTest(['run'], { ...settings(sandbox, 'fenced', other), ...sweeping });
    expect(await first.ended).toBe(1);
    expect(saidBy(first.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: another instance has taken over this account/),
    ]);
    sandbox.setRate(0);
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'fenced', sandbox);
    expect(second.process.exitCode).toBeNull();
    expect(await second.end('SIGTERM')).toBe(0);
    expect(checkOrders(await ordersOf('fenced'), sandbox).violations).toEqual([]);
  });

  it('does not publish under the prefix of another account, whose records it would take for its own', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const first = cliForTest(['run'], settings(sandbox, 'shared', folderForTest()));
    await firstReadDone(first);
    const env = { ...settings(sandbox, 'shared', folderForTest()), ACCOUNT_NAME: 'other' };
    const other = cliForTest(['run'], env);
    expect(await other.ended).toBe(2);
    expect(saidBy(other.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: .* TOPIC_PREFIX of its own/),
    ]);
    expect(first.process.exitCode).toBeNull();
  });

  it('does not share a state folder with another process', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const env = settings(sandbox, 'locked', folderForTest());
    const first = cliForTest(['run'], env);
    await firstReadDone(first);
    const second = cliForTest(['run'], env);
    expect(await second.ended).toBe(1);
    expect(saidBy(second.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: another process uses the state folder .* STATE_DIR/),
    ]);
    expect(first.process.exitCode).toBeNull();
  });

  it('ends at once with a wrong API key, which it does not print', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const key = 'secret-wrong-key';
    const env = { ...settings(sandbox, 'wrong-key', folderForTest()), API_KEY: key };
    const service = cliForTest(['run'], env);
    expect(await service.ended).toBe(1);
    expect(saidBy(service.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: the login .* API_KEY/),
    ]);
    expect(service.stderr() + service.stdout()).not.toContain(key);
  });

  it('goes on when a key that has worked is refused for a moment, and ends when that lasts', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 }, tokenLifeMs: 10_000 });
    const refused = { endpoint: 'login', kind: 'status', status: 401 } as const;
    const service = cliForTest(['run'], {
      ...settings(sandbox, 'refused-key', folderForTest()),
      API_KEY_PATIENCE_MS: '10000',
    });
    const said = () => service.lines().filter(({ event }) => event === 'readiness');
    await service.logged(({ event, ready }) => event === 'readiness' && ready === true);
    const lift = sandbox.fault(refused);
    const { reasons } = await service.logged(
      ({ event, ready, reasons }) =>
        event === 'readiness' && ready === false && String(reasons).includes('API key'),
    );
    expect(String(reasons)).toMatch(
      /waiting for the login since .* refused the API key \(401\), which it has accepted before/,
    );
    lift();
    await vi.waitUntil(() => said().at(-1)?.ready === true, PATIENCE);

    sandbox.fault(refused);
    expect(await service.ended).toBe(1);
    expect(saidBy(service.stderr())).toEqual([
      expect.stringMatching(
        /^cellarstream: the login .* refused the API key \(401\): check API_KEY/,
      ),
    ]);
  });

  it("stamps events by the machine's clock once that is set right, and not by what it said at the start", async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const HOUR = 3_600_000;
    const said = 'the clock is an hour back';
    const setBack = `const { now } = Date; process.once('SIGUSR2', () => { Date.now = () => now() - ${HOUR}; console.error('${said}'); });`;
    const service = cliForTest(['run'], {
      ...settings(sandbox, 'clock-set', folderForTest()),
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(setBack)}`,
    });
    await firstReadDone(service);
    const began = Date.now();
    service.process.kill('SIGUSR2');
    await vi.waitUntil(() => service.stderr().includes(said), PATIENCE); // a busy process may first read a page
    sandbox.setStatus(100_001, 'payment_status', 'refunded');
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'clock-set', sandbox);
    const { value } = (await ordersOf('clock-set')).find((event) => event.value?.op === 'u')!;
    const { value: status } = (
      await readTopic(inject('brokers'), inject('registryUrl'), 'clock-set.order-status-changes')
    ).at(-1)!;
    for (const stamp of [Number(value?.ts_ms), Date.parse(String(status?.observed_at))]) {
      expect(stamp + HOUR).toBeGreaterThanOrEqual(began);
      expect(stamp + HOUR).toBeLessThan(began + HOUR / 2);
    }
    expect(await service.logged(({ event }) => event === 'clock-set-back')).toMatchObject({
      backMs: expect.closeTo(HOUR, -6) as number,
    });
  });

  it('waits for an API that redirects, and goes on when it answers again', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const headers = { location: 'https://maintenance.example/' };
    const lift = sandbox.fault({ endpoint: 'orders', kind: 'status', status: 302, headers });
    const service = cliForTest(['run'], settings(sandbox, 'redirects', folderForTest()));
    await service.logged(
      ({ event, what, count }) => event === 'retry' && what === 'orders' && count === 2,
    );
    lift();
    await firstReadDone(service);
  });

  it('names all wrong settings at once, and ends with 2', async () => {
    const env = {
      RESOURCES: 'oders',
      POLL_INTERVAL_MS: '5',
      KAFKA_BROKERS: '',
      API_KEY: 'secret-key',
    };
    const service = cliForTest(['run'], { ...env, STATE_DIR: folderForTest() });
    expect(await service.ended).toBe(2);
    for (const name of [
      'RESOURCES',
      'POLL_INTERVAL_MS',
      'KAFKA_BROKERS',
      'API_BASE_URL',
      'SCHEMA_REGISTRY_URL',
    ]) {
      expect(service.stderr()).toContain(name);
    }
    expect(service.stderr()).not.toMatch(/secret-key|\n\s+at /);
  });

  it('ends at once when a topic exists with a policy that would lose data', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    await createTopic(new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }), {
      topic: 'wrong-policy.orders',
      configEntries: [{ name: 'cleanup.policy', value: 'delete' }],
    });
    const service = cliForTest(['run'], settings(sandbox, 'wrong-policy', folderForTest()));
    expect(await service.ended).toBe(1);
    expect(saidBy(service.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: .*wrong-policy\.orders has cleanup\.policy=delete/),
    ]);
  });

  it('waits for a Kafka that is not there, a line a try; check says so and ends with 1', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const env = {
      ...settings(sandbox, 'no-kafka', folderForTest()),
      KAFKA_BROKERS: `127.0.0.1:${await deadPort()}`,
    };
    const service = cliForTest(['run'], env);
    const line = await service.logged(
      ({ event, what, count }) => event === 'retry' && what === 'kafka' && count === 1,
    );
    expect(JSON.stringify(line)).toContain('ECONNREFUSED');
    expect(await service.end('SIGTERM')).toBe(0);
    expect(saidBy(service.stderr())).toEqual([]);

    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toMatch(/^login +ok/m);
    expect(check.stdout()).toMatch(/^kafka +FAIL .*ECONNREFUSED/m);
    expect(check.stdout()).toMatch(/^registry +ok/m);
  });

  it('waits for a registry that is not there, a line a try; check says so and ends with 1', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const url = `http://127.0.0.1:${await deadPort()}`;
    const env = { ...settings(sandbox, 'no-registry', folderForTest()), SCHEMA_REGISTRY_URL: url };
    const service = cliForTest(['run'], env);
    const line = await service.logged(({ event, count }) => event === 'retry' && count === 1);
    expect(JSON.stringify(line)).toMatch(/registry/);
    expect(await service.end('SIGTERM')).toBe(0);

    const check = cliForTest(['check'], env);
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toMatch(/^registry +FAIL/m);
  });

  it('makes its topics with the settings of the contract', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const env = { ...settings(sandbox, 'topics', folderForTest()), TOPIC_PARTITIONS: '' };
    const service = cliForTest(['run'], env);
    await firstReadDone(service);
    const admin = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const setting = async (topic: string, name: string) => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames: [name] }],
      });
      return resources[0]?.configEntries[0]?.configValue;
    };
    expect(await setting('topics.orders', 'cleanup.policy')).toBe('compact');
    expect(await setting('topics.orders', 'min.compaction.lag.ms')).toBe(String(30 * 86_400_000));
    expect(await setting('topics.order-status-changes', 'cleanup.policy')).toBe('delete');
    expect(await setting('topics.order-status-changes', 'retention.ms')).toBe('-1');
    expect(await setting('topics.cursors', 'segment.ms')).toBe('600000');
    const { topics } = await admin.fetchTopicMetadata({
      topics: ['topics.orders', 'topics.cursors'],
    });
    const partitions = topics.map(({ name, partitions }) => [name, partitions.length]);
    expect(Object.fromEntries(partitions)).toEqual({ 'topics.orders': 6, 'topics.cursors': 1 });
    await admin.disconnect();
  });
});

describe.concurrent('check', TIMEOUT, () => {
  it('finds everything fine, changes nothing, and ends with 0', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const check = cliForTest(['check'], settings(sandbox, 'check', folderForTest()));
    await check.succeeded();
    for (const what of ['settings', 'login', 'orders', 'kafka', 'registry']) {
      expect(check.stdout()).toMatch(new RegExp(`^${what} +ok`, 'm'));
    }
    const admin = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    expect((await admin.listTopics()).filter((topic) => topic.startsWith('check.'))).toEqual([]);
    await admin.disconnect();
  });
});

describe.concurrent('peek', TIMEOUT, () => {
  it('prints what would be published as JSON lines, without Kafka', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 25 } });
    const env = { API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey, STATE_DIR: folderForTest() };
    const peek = cliForTest(['peek', 'orders'], env);
    await peek.succeeded();
    const events = peek
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { after: unknown });
    expect(events.map(({ after }) => after)).toEqual([...sandbox.truth.records('orders')]);

    const some = cliForTest(['peek', 'orders', '--limit', '3'], env);
    await some.succeeded();
    expect(some.stdout().trim().split('\n')).toHaveLength(3);
  });

  it('prints every line though its reader is slow, and asks for no more meanwhile', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 1_000 } });
    const env = { API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey, PAGE_SIZE: '100' };
    const peek = cliForTest(['peek', 'orders'], env);
    const { stdout } = peek.process;
    stdout!.pause();
    const asked = () => sandbox.truth.requests('orders').length;
    await vi.waitUntil(() => asked() > 0, PATIENCE);
    let before = -1;
    await vi.waitUntil(() => before === (before = asked()), { ...PATIENCE, interval: 1_500 });
    expect(before).toBeLessThan(6); // a pipe holds no more
    stdout!.resume();
    await peek.succeeded();
    expect(peek.stdout().trimEnd().split('\n')).toHaveLength(1_000);
  });
});
