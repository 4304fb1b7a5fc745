import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it, vi } from 'vitest';
import { checkOrders } from './support/checker.ts';
import { saidBy } from './support/cli.ts';
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
    // Requests that were answered but not committed at the stop are repeated: one page, and at most nine that were read ahead.
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
    // The state after a kill between commit and storage: the events are committed, their images are not stored.
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
      expect.stringMatching(/^cellarstream: another instance has claimed this account/),
    ]);
    sandbox.setRate(0);
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'fenced', sandbox);
    expect(second.process.exitCode).toBeNull();
    expect(await second.end('SIGTERM')).toBe(0);
    expect(checkOrders(await ordersOf('fenced'), sandbox).violations).toEqual([]);
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
});
