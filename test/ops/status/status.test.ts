import { describe, expect, it } from 'vitest';
import { VERSION } from '../../../src/core/version.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { Lane, Published, QuotaUse } from '../../../src/observe/hooks.ts';
import { StatusModel } from '../../../src/ops/status/status.ts';
import type { Change, Operation } from '../../../src/streams/diff/change.ts';
import type { Certificate } from '../../../src/schemas/events/certificate.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { readDescription } from '../../../src/description/read-description.ts';
import { pathOf } from '../../docs/texts.ts';
import { certificateOf } from '../../support/certificate.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const QUOTAS: QuotaUse[] = [{ name: 'orders', used: 62, limit: 100 }];

/** A service of orders (polled) and inventory (read whole) at a clock that is set by hand. */
function service(description = WINE) {
  let at = START;
  let ready = true;
  const model = new StatusModel({
    description,
    pollIntervalMs: 0,
    account: 'cellar',
    prefix: 'wine',
    resources: ['orders', 'inventory'],
    now: () => at,
    readiness: () => ({ ready, reasons: ready ? [] : ['waiting'], causes: ready ? [] : ['api'] }),
  });
  const { hooks, status } = model;
  const page = (more: Partial<Published> = {}, resource = 'orders', lane: Lane = 'poll') =>
    hooks.onPublished!({
      resource,
      lane,
      changes: [],
      statusChanges: [],
      unchanged: 0,
      known: 1,
      at,
      completes: true,
      ...more,
    });
  return {
    hooks,
    status,
    accountFailed: (error: unknown, delayMs: number) => model.accountFailed(error, delayMs),
    page,
    resource: (name = 'orders') => status().resources.find(({ resource }) => resource === name)!,
    pass: (ms: number) => (at += ms),
    fail: () => (ready = false),
    now: () => at,
  };
}

it('shows a life cycle for each status field of the description, and scans of its lists', () => {
  const model = new StatusModel({
    description: readDescription(pathOf('test/config/store.yaml')),
    pollIntervalMs: 0,
    account: 'north',
    prefix: 'store',
    resources: ['price-rules'],
    now: () => START,
    readiness: () => ({ ready: true, reasons: [], causes: [] }),
  });
  const page = (lane: Lane) =>
    model.hooks.onPublished!({
      ...{ resource: 'price-rules', lane, changes: [], statusChanges: [], unchanged: 1 },
      ...{ known: 1, at: START, completes: true },
    });
  page('poll');
  expect(model.status().resources[0]!.lookedAt).toBeNull(); // the list has no dates
  page('sweep');
  expect(model.status().resources[0]!.lookedAt).toBe(START);
  const named = model
    .status()
    .lifeCycles.map(({ resource, subject, field }) => `${resource}: ${subject} ${field}`);
  expect(named).toEqual(['sales: sale state', 'sales: sale payment.state', 'sales: line state']);
});

function change(op: Operation, updatedAt: number | null, was: number | null = null): Change {
  const record = (time: number | null): JsonObject => ({
    email: 'jane@example.com',
    ...(time !== null && { updated_at: new Date(time).toISOString() }),
  });
  return {
    key: '100234',
    op,
    before: op === 'u' ? record(was) : null,
    after: record(updatedAt),
    images: { before: null, after: null },
    changed: [],
    updatedAt,
    updatedBefore: op === 'u' ? was : null,
  };
}

function paid(key: string, from: string | null, to: string | null): Published['statusChanges'][0] {
  return {
    key,
    change: {
      subject: 'order',
      subjectId: null,
      field: 'payment_status',
      from,
      to,
      changedAt: null,
    },
  };
}

describe('StatusModel', () => {
  it('says who it is, since when, and whether it is ready', () => {
    const { status, pass, fail, hooks } = service();
    pass(5_000);
    expect(status()).toMatchObject({
      version: VERSION,
      account: 'cellar',
      prefix: 'wine',
      since: START,
      at: START + 5_000,
      ready: true,
      reasons: [],
      token: null,
      quotas: [],
    });
    hooks.onStart!({ quotas: () => QUOTAS });
    fail();
    expect(status()).toMatchObject({
      ready: false,
      reasons: ['waiting'],
      causes: ['api'],
      quotas: QUOTAS,
    });
    expect(status().lifeCycles).toHaveLength(9);
  });

  it('tells how long the token is good, and no more than nothing once it has ended', () => {
    const { status, pass, hooks } = service();
    pass(1_000);
    hooks.onLogin!({ lifeMs: 60_000, aheadMs: 0 });
    pass(20_000);
    expect(status().token).toEqual({ since: START + 1_000, lifeMs: 60_000, leftMs: 40_000 });
    pass(90_000);
    expect(status().token!.leftMs).toBe(0);
  });

  it('follows a resource from its take-over to a failure', () => {
    const { resource, hooks, page, pass } = service();
    const error = new CellarstreamError('API_UNREACHABLE', 'no answer');
    const states: string[] = [];
    const note = () => states.push(resource().state);
    note();
    hooks.onReady!({ resource: 'orders' });
    note();
    page({ completes: false }, 'orders', 'first-read');
    hooks.onProgress!({ resource: 'orders', read: 10, total: 100, done: false });
    page();
    note();
    hooks.onRetry!({ what: 'orders', resource: 'orders', error, count: 2, delayMs: 4_000 });
    note();
    expect(resource().retry).toEqual({
      what: 'orders',
      error: 'no answer',
      count: 2,
      nextAt: START + 4_000,
    });
    hooks.onProgress!({ resource: 'orders', read: 100, total: 100, done: true });
    pass(4_000);
    page();
    note();
    hooks.onFailed!({ resource: 'orders', error, delayMs: 60_000 });
    note();
    page();
    hooks.onCommit!({ resource: 'orders' });
    pass(10_001); // Kafka says nothing at all
    note();
    hooks.onCommitted!({ resource: 'orders', outcome: 'committed', elapsedMs: 23, messages: 1 });
    note();
    expect(states).toEqual([
      'taking-over',
      'taking-over',
      'first-read',
      'waiting',
      'following',
      'failed',
      'waiting',
      'following',
    ]);
    expect(resource()).toMatchObject({ transactionMs: 23, retry: null });
    expect(resource('inventory').state).toBe('taking-over');
  });

  it('shows every list as failed when the whole account has, until its next page', () => {
    const { accountFailed, resource, hooks, page } = service();
    hooks.onReady!({ resource: 'orders' });
    page();
    accountFailed(new CellarstreamError('API_KEY_REJECTED', 'wrong key'), 60_000);
    for (const name of ['orders', 'inventory'])
      expect(resource(name)).toMatchObject({
        state: 'failed',
        retry: { error: 'wrong key', count: 1, nextAt: START + 60_000 },
      });
    page();
    expect(resource().state).toBe('following');
    expect(resource('inventory').state).toBe('failed');
  });

  it('goes on waiting for what the initial snapshot cannot have, although polls go on', () => {
    const { resource, hooks, page, pass } = service();
    const error = new CellarstreamError('API_STATUS', 'it answers 500');
    const retry = (count: number) =>
      hooks.onRetry!({ what: 'orders', resource: 'orders', error, count, delayMs: 20_000 });
    const state = () => resource().state;
    hooks.onReady!({ resource: 'orders' });
    hooks.onProgress!({ resource: 'orders', read: 10, total: 100, done: false });
    page();
    for (let count = 1; count <= 5; count++) {
      retry(count);
      for (let poll = 0; poll < 15; poll++) {
        pass(1_600);
        page();
        expect(state()).toBe('waiting');
      }
    }
    expect(resource().retry).toMatchObject({ count: 5, error: 'it answers 500' });
    page({ completes: false }, 'orders', 'first-read');
    expect(state()).toBe('first-read');
    retry(1);
    pass(19_999);
    page({ completes: false }, 'orders', 'first-read'); // within the pause: the poll waits
    expect(state()).toBe('waiting');
    pass(60_001);
    page(); // the initial snapshot said no word for a minute, and polls do
    expect(state()).toBe('first-read');
    hooks.onProgress!({ resource: 'orders', read: 100, total: 100, done: true });
    retry(1);
    pass(20_000);
    page();
    expect(state()).toBe('following');
  });

  it('repeats as a warning nothing that it is not ready for', () => {
    const { status, hooks, fail } = service();
    for (let count = 1; count <= 3; count++)
      hooks.onRetry!({
        what: 'orders',
        resource: 'orders',
        error: new Error('no'),
        count,
        delayMs: 1,
      });
    expect(status().warnings.map(({ kind }) => kind)).toEqual(['tried-again']);
    fail();
    expect(status().warnings).toEqual([]);
  });

  it('knows when a list was looked through: by a poll where there are polls, else by a whole reading', () => {
    const { resource, page, pass, hooks } = service();
    page({}, 'orders', 'first-read');
    page({}, 'orders', 'sweep');
    page({ completes: false });
    page({ completes: false }, 'inventory', 'sweep');
    expect([resource().lookedAt, resource('inventory').lookedAt]).toEqual([null, null]);
    pass(1_000);
    page();
    page({}, 'inventory', 'sweep');
    hooks.onSwept!({
      resource: 'inventory',
      number: 3,
      records: 9,
      proof: 'exact',
      level: 'counted',
      canProve: true,
      canBeAsked: false,
    });
    pass(1_000);
    expect(resource()).toMatchObject({ lookedAt: START + 1_000, swept: null });
    expect(resource('inventory')).toMatchObject({
      lookedAt: START + 1_000,
      swept: { at: START + 1_000, records: 9, proof: 'exact' },
      level: { name: 'counted', inWords: 'counted (as many keys as the total says)' },
    });
  });

  it('has the newest certificate, and why a reading since has none', () => {
    const { resource, hooks } = service();
    const certify = (more: Partial<Certificate>) =>
      hooks.onCertified!({
        resource: 'orders',
        certificate: certificateOf({}, more),
        level: 'whole',
      });
    expect(resource()).toMatchObject({ certified: null, uncertified: null });
    expect(resource().level).toBeNull();
    certify({ number: 4, total_records: null, proof: 'complete' });
    expect(resource().level).toMatchObject({ name: 'whole' });
    expect(resource().certified).toMatchObject({ number: 4, whyNotExact: 'the total moved' });
    hooks.onUncertified!({ resource: 'orders', why: 'too-soon' });
    expect(resource()).toMatchObject({ certified: { number: 4 }, uncertified: 'too-soon' });
    certify({ number: 5, ended_at: 7 });
    expect(resource()).toMatchObject({ certified: { at: 7, number: 5 }, uncertified: null });
  });

  it('tells the pace of an initial snapshot and the time left, by the last minute', () => {
    const { resource, hooks, pass } = service();
    const progress = (read: number) =>
      hooks.onProgress!({ resource: 'orders', read, total: 100_000, done: read === 100_000 });
    progress(1_000);
    expect(resource().firstRead).toEqual({
      read: 1_000,
      total: 100_000,
      done: false,
      perSecond: null,
      leftMs: null,
    });
    pass(1_000_000); // a pause that no longer counts
    for (let read = 2_000; read <= 40_000; read += 1_000) {
      pass(2_000);
      progress(read);
    }
    expect(resource().firstRead).toMatchObject({ perSecond: 500, leftMs: 120_000 });
    pass(58_000);
    expect(resource().firstRead!.perSecond).toBeCloseTo(1_000 / 60);
    pass(2_000);
    expect(resource().firstRead).toMatchObject({ perSecond: null, leftMs: null });
    pass(3_600_000); // it stands still
    expect(resource().firstRead).toMatchObject({ perSecond: 0, leftMs: null });
    progress(100_000);
    expect(resource().firstRead).toMatchObject({ done: true, perSecond: null, leftMs: null });
  });

  it('counts the requests of the last minute by how they were answered', () => {
    const { resource, hooks, pass } = service();
    const asked = (status: number | undefined, what = 'orders') =>
      hooks.onRequest!({ what, status, elapsedMs: 5, waitedMs: 0 });
    [200, 200, 429, 503, 404, undefined].forEach((status) => asked(status));
    asked(200, 'login');
    asked(200, 'inventory');
    expect(resource().requests).toEqual({ ok: 2, refused: 1, failed: 2, unanswered: 1 });
    pass(59_000);
    asked(200);
    expect(resource().requests).toEqual({ ok: 3, refused: 1, failed: 2, unanswered: 1 });
    pass(1_000);
    expect(resource().requests).toEqual({ ok: 1, refused: 0, failed: 0, unanswered: 0 });
  });

  it('counts a status as refused that means an exceeded quota by the description', () => {
    const errors = { 420: 'quota', 429: 'final' } as const;
    const { resource, hooks } = service({ ...WINE, errors });
    for (const status of [420, 429]) {
      hooks.onRequest!({ what: 'orders', status, elapsedMs: 5, waitedMs: 0 });
    }
    expect(resource().requests).toMatchObject({ refused: 1, failed: 1 });
  });

  it('measures from the change to the commit, on the clock of the API', () => {
    const { resource, hooks, page, now } = service();
    hooks.onLogin!({ lifeMs: 1, aheadMs: 3_600_000 });
    const apiTime = now() + 3_600_000;
    page({
      changes: [
        change('u', apiTime - 800, apiTime - 90_000),
        change('c', apiTime - 2_000),
        change('r', apiTime - 1e9), // old, and read for the first time
        change('u', apiTime - 1e9, apiTime - 1e9), // its time was not touched
        change('u', null),
      ],
    });
    const { lastMs, p50Ms, p95Ms } = resource().freshness;
    expect(lastMs).toBe(2_000);
    expect(p50Ms! / 800).toBeCloseTo(1, 0.5);
    expect(p95Ms! / 2_000).toBeCloseTo(1, 0.5);
  });

  it('takes no seconds from what `Date` tells in whole ones, and no less than nothing for a lag', () => {
    const { resource, hooks, page, now } = service();
    hooks.onLogin!({ lifeMs: 1, aheadMs: -900 });
    page({ changes: [change('c', now() - 700)] });
    expect(resource().freshness.lastMs).toBe(700);
    page({ changes: [change('c', now() + 500)] });
    expect(resource().freshness.lastMs).toBe(0);
  });

  it('keeps the difference of the clocks through a login that tells none, and takes none from a slow one', () => {
    const { resource, hooks, page, now } = service();
    const lag = () => {
      page({ changes: [change('c', now() - 700)] });
      return resource().freshness.lastMs;
    };
    const login = (aheadMs: number | undefined, elapsedMs: number) => {
      hooks.onRequest!({ what: 'login', status: 200, elapsedMs, waitedMs: 0 });
      hooks.onLogin!({ lifeMs: 1, aheadMs });
    };
    login(10_000, 50);
    expect(lag()).toBe(10_700);
    login(undefined, 50);
    expect(lag()).toBe(10_700);
    login(-6_000, 6_000);
    expect(lag()).toBe(700);
  });

  it('forgets lags after five minutes', () => {
    const { resource, page, now, pass } = service();
    page({ changes: [change('c', now() - 700)] });
    pass(4 * 60_000);
    expect(resource().freshness.p50Ms).not.toBeNull();
    pass(60_000);
    expect(resource().freshness).toEqual({ lastMs: 700, p50Ms: null, p95Ms: null });
  });

  it('keeps a point each five seconds, for five minutes', () => {
    const { resource, page, pass, now } = service();
    page({
      unchanged: 98,
      changes: [change('c', now() - 700), change('c', now() - 900), change('d', null)],
    });
    expect(resource().series.recordsPerSecond).toEqual(Array(60).fill(0));
    pass(5_000);
    const { series, perSecond } = resource();
    expect(series).toMatchObject({ everyMs: 5_000, endsAt: START + 5_000 });
    expect(series.recordsPerSecond).toEqual([...Array<number>(59).fill(0), 20]);
    expect(series.eventsPerSecond.at(-1)).toBeCloseTo(0.6);
    expect(series.lagMs).toEqual([...Array<null>(59).fill(null), 900]);
    expect(perSecond).toEqual({ records: 10, events: 0.3 });
    pass(3_600_000);
    expect(resource().series.recordsPerSecond).toEqual(Array(60).fill(0));
  });

  it('does not count what is published again as read', () => {
    const { resource, page, pass } = service();
    page({ unchanged: 10, changes: Array<Change>(10).fill(change('r', null)) }, 'orders', 'resync');
    pass(1_000);
    expect(resource().perSecond).toEqual({ records: 1, events: 1 });
  });

  it('shows the newest status changes and dead letters first, and so many', () => {
    const { status, hooks, page, pass } = service();
    for (let n = 0; n < 60; n++) {
      page({ statusChanges: [paid(`${n}`, null, 'pending'), paid(`${n}`, 'pending', 'paid')] });
      hooks.onRejected!({ resource: 'orders', reason: 'no-key', offset: n });
      pass(1);
    }
    const { statusChanges, deadLetters, lifeCycles, resources } = status();
    expect(statusChanges).toHaveLength(50);
    expect(statusChanges[0]).toEqual({
      at: START + 59,
      order: '59',
      subject: 'order',
      subjectId: null,
      field: 'payment_status',
      from: 'pending',
      to: 'paid',
    });
    expect(deadLetters).toHaveLength(20);
    expect(deadLetters[0]).toEqual({
      at: START + 59,
      resource: 'orders',
      reason: 'no-key',
      offset: 59,
    });
    expect(resources[0]!.deadLetters).toEqual({ 'no-key': 60 });
    expect(lifeCycles[0]).toMatchObject({ subject: 'order', field: 'payment_status' });
    expect(lifeCycles[0]!.changes.map(({ count }) => count)).toEqual([60, 60]);
  });

  it('shows nothing personal, and stays small whatever the API and errors say', () => {
    const { status, hooks, page, now } = service();
    const long = 'long '.repeat(20_000);
    const error = new Error(long);
    hooks.onRetry!({ what: 'orders', resource: 'orders', error, count: 1, delayMs: 1 });
    for (let n = 0; n < 500; n++) {
      const changes = [change('u', now() - n, now() - 2 * n)];
      page({ changes, statusChanges: [paid(`${n} ${long}`, `${n}${long}`, `${n + 1}${long}`)] });
    }
    const text = JSON.stringify(status());
    expect(text).not.toContain('jane@example.com');
    expect(text.length).toBeLessThan(60_000);
  });

  it('knows nothing of resources that are not read', () => {
    const { status, page, hooks } = service();
    page({}, 'products');
    hooks.onReady!({ resource: 'products' });
    expect(status().resources.map(({ resource }) => resource)).toEqual(['orders', 'inventory']);
  });
});
