import { afterEach, describe, expect, it, vi } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { Hooks, Published } from '../../../src/observe/hooks.ts';
import { METRICS } from '../../../src/ops/metrics/metric-table.ts';
import type { Metric } from '../../../src/ops/metrics/metric-table.ts';
import { metrics } from '../../../src/ops/metrics/metrics.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { RESOURCES } from '../../../src/sandbox/resources.ts';
import { READING_LEVELS } from '../../../src/schemas/events/certificate.ts';
import type { ReadingLevel } from '../../../src/schemas/events/certificate.ts';
import type { Change, Operation } from '../../../src/streams/diff/change.ts';
import { readDescription } from '../../../src/description/read-description.ts';
import { pathOf } from '../../docs/texts.ts';
import { certificateOf } from '../../support/certificate.ts';
import { parseMetrics } from './parse-metrics.ts';
import { PROCESS_METRICS } from './process-metrics.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const SECONDS = START / 1_000;
const REFUSED = new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from 10.0.0.1');

function change(op: Operation, updatedAt: number | null = null): Change {
  const images = { before: null, after: null };
  return { key: '100234', op, before: null, after: null, images, changed: [], updatedAt };
}

/** Metrics of orders and inventory, whose hooks are called by hand at a clock that stands. */
function service(options: Partial<Parameters<typeof metrics>[0]> = {}) {
  let at = START;
  const { hooks, text } = metrics({
    description: WINE,
    account: 'estate',
    resources: ['orders', 'inventory'],
    pollIntervalMs: 0,
    wallClock: () => at,
    readiness: () => ({ ready: true, reasons: [], causes: [] }),
    ofProcess: true,
    ...options,
  });
  const read = async () => parseMetrics(await text());
  return {
    hooks: hooks as Required<Hooks>,
    text,
    pass: (ms: number) => (at += ms),
    series: read,
    value: async (name: string, labels: Record<string, string> = {}) =>
      (await read()).value(name, { account: 'estate', ...labels }),
    page: (published: Partial<Published>) =>
      hooks.onPublished!({
        resource: 'orders',
        lane: 'poll',
        changes: [],
        statusChanges: [],
        unchanged: 0,
        known: 0,
        at,
        completes: false,
        ...published,
      }),
  };
}

afterEach(() => void vi.restoreAllMocks());

const STORE = readDescription(pathOf('test/config/store.yaml'));

describe('metrics', () => {
  it('have the lists and statuses of the description', async () => {
    const { series, hooks } = service({ description: STORE, resources: ['sales'] });
    hooks.onReady({ resource: 'price-rules' });
    hooks.onReady({ resource: 'orders' });
    const { samples } = await series();
    const labels = (name: string, label: string) => [
      ...new Set(samples.filter((one) => one.name === name).map((one) => one.labels[label])),
    ];
    const changes = 'cellarstream_status_changes_published_total';
    expect(labels(changes, 'resource')).toEqual(['sales']);
    expect(labels(changes, 'subject')).toEqual(['sale', 'line']);
    expect(labels(changes, 'field')).toEqual(['state', 'payment.state']);
    expect(labels('cellarstream_api_requests_total', 'resource')).toEqual(['sales', 'login']);
    expect(labels('cellarstream_resource_openings_total', 'resource')).toEqual([
      ...['sales', 'price-rules', 'other'],
    ]);
  });

  it('are there at 0 before anything has happened, so that the first event is an increase', async () => {
    const { series } = service();
    const all = await series();
    for (const { name, type } of Object.values<Metric>(METRICS)) {
      if (type === 'gauge') continue;
      const values = all.samples.filter((sample) => sample.name.startsWith(name));
      expect(values, name).not.toEqual([]);
      expect(new Set(values.map(({ value }) => value)), name).toEqual(new Set([0]));
    }
    const start = { account: 'estate' };
    expect(
      all.value('cellarstream_api_requests_total', { ...start, resource: 'orders', status: '429' }),
    ).toBe(0);
    expect(
      all.value('cellarstream_retries_total', {
        ...start,
        service: 'kafka',
        resource: 'all',
        code: 'KAFKA_UNREACHABLE',
      }),
    ).toBe(0);
    expect(
      all.value('cellarstream_status_changes_published_total', {
        ...start,
        resource: 'orders',
        subject: 'fulfillment',
        field: 'shipment_status',
      }),
    ).toBe(0);
  });

  it('say nothing of what is not known yet, nor of lists that are not read', async () => {
    const { samples } = await service().series();
    const names = new Set(samples.map(({ name }) => name));
    for (const name of [
      'cellarstream_images_stored',
      'cellarstream_token_expiry_timestamp_seconds',
      'cellarstream_last_complete_scan_timestamp_seconds',
    ])
      expect(names).not.toContain(name);
    expect(samples.filter(({ labels }) => labels.resource === 'customers')).toEqual([]);
  });

  it('count requests by their status, and what they took and waited', async () => {
    const { hooks, value } = service();
    hooks.onRequest({ what: 'orders', status: 200, elapsedMs: 300, waitedMs: 4_000 });
    hooks.onRequest({ what: 'orders', status: undefined, elapsedMs: 30_000, waitedMs: 0 });
    hooks.onRequest({ what: 'login', status: 418, elapsedMs: 1, waitedMs: 0 });
    const requests = 'cellarstream_api_requests_total';
    expect(await value(requests, { resource: 'orders', status: '200' })).toBe(1);
    expect(await value(requests, { resource: 'orders', status: 'none' })).toBe(1);
    expect(await value(requests, { resource: 'login', status: '4xx' })).toBe(1);
    const orders = { resource: 'orders' };
    const seconds = 'cellarstream_api_request_duration_seconds';
    expect(await value(`${seconds}_sum`, orders)).toBeCloseTo(30.3);
    expect(await value(`${seconds}_bucket`, { ...orders, le: '0.25' })).toBe(0);
    expect(await value(`${seconds}_bucket`, { ...orders, le: '0.5' })).toBe(1);
    expect(await value('cellarstream_quota_wait_seconds_sum', orders)).toBe(4);
    expect(await value('cellarstream_quota_wait_seconds_count', orders)).toBe(2);
  });

  it('ask how much of the quotas is in use whenever they are read', async () => {
    const { hooks, value } = service();
    let used = 7;
    hooks.onStart({
      quotas: () => [
        { name: 'orders', used, limit: 100 },
        { name: 'login', used: 1, limit: 10 },
      ],
    });
    expect(await value('cellarstream_quota_used_requests', { resource: 'orders' })).toBe(7);
    used = 0;
    expect(await value('cellarstream_quota_used_requests', { resource: 'orders' })).toBe(0);
    expect(await value('cellarstream_quota_limit_requests', { resource: 'login' })).toBe(10);
  });

  it('tell when the token was given and when it ends', async () => {
    const { hooks, pass, value } = service();
    pass(5_000);
    hooks.onLogin({ lifeMs: 1_800_000, aheadMs: undefined });
    expect(await value('cellarstream_token_refreshes_total')).toBe(1);
    expect(await value('cellarstream_token_issued_timestamp_seconds')).toBe(SECONDS + 5);
    expect(await value('cellarstream_token_expiry_timestamp_seconds')).toBe(SECONDS + 1_805);
  });

  it('count records read, unchanged and published, and status changes by their field', async () => {
    const { page, value } = service();
    const statusChange = {
      subject: 'fulfillment',
      subjectId: 'F-1',
      field: 'shipment_status',
      from: null,
      to: 'sent',
      changedAt: null,
    } as const;
    page({
      lane: 'sweep',
      changes: [change('c'), change('u'), change('u'), change('d')],
      statusChanges: [{ key: '100234', change: statusChange }],
      unchanged: 5,
      known: 42,
    });
    const orders = { resource: 'orders' };
    expect(await value('cellarstream_records_read_total', { ...orders, lane: 'sweep' })).toBe(8);
    expect(await value('cellarstream_records_unchanged_total', { ...orders, lane: 'sweep' })).toBe(
      5,
    );
    const events = 'cellarstream_events_published_total';
    expect(await value(events, { ...orders, op: 'u' })).toBe(2);
    expect(await value(events, { ...orders, op: 'd' })).toBe(1);
    expect(await value(events, { ...orders, op: 'r' })).toBe(0);
    expect(await value('cellarstream_images_stored', orders)).toBe(42);
    const labels = { ...orders, subject: 'fulfillment', field: 'shipment_status' };
    expect(await value('cellarstream_status_changes_published_total', labels)).toBe(1);

    page({ lane: 'resync', changes: [change('u'), change('r'), change('r')], unchanged: 1 });
    expect(await value('cellarstream_records_read_total', { ...orders, lane: 'resync' })).toBe(2);
    expect(await value(events, { ...orders, op: 'r' })).toBe(2);
  });

  it('tell times by the clock of the machine, which Prometheus holds against its own', async () => {
    vi.spyOn(Date, 'now').mockReturnValue(START + 3_600_000); // the machine was suspended
    const { hooks, page, value } = service({ wallClock: undefined as never });
    hooks.onLogin({ lifeMs: 60_000, aheadMs: undefined });
    page({ completes: true });
    const hour = SECONDS + 3_600;
    expect(await value('cellarstream_token_issued_timestamp_seconds')).toBe(hour);
    expect(await value('cellarstream_token_expiry_timestamp_seconds')).toBe(hour + 60);
    expect(
      await value('cellarstream_last_complete_scan_timestamp_seconds', {
        resource: 'orders',
        lane: 'poll',
      }),
    ).toBe(hour);
  });

  it('tell how often it looks, as it is set', async () => {
    const interval = (one: ReturnType<typeof service>) =>
      one.value('cellarstream_poll_interval_seconds');
    expect(await interval(service())).toBe(0);
    expect(await interval(service({ pollIntervalMs: 90_000 }))).toBe(90);
  });

  it('measure how fresh changes are, and not what an initial snapshot brings', async () => {
    const { page, value, pass } = service();
    const sum = () => value('cellarstream_freshness_seconds_sum', { resource: 'orders' });
    pass(10_000);
    page({ lane: 'first-read', changes: [change('r', START), change('c', START)] });
    page({ lane: 'resync', changes: [change('u', START)] });
    page({ lane: 'poll', changes: [change('d', START), change('r', START), change('u')] });
    expect(await sum()).toBe(0);
    page({ lane: 'poll', changes: [change('u', START + 9_000), change('c', START + 8_000)] });
    expect(await sum()).toBe(3);
    page({ lane: 'sweep', changes: [change('u', START)] });
    page({ lane: 'reread', changes: [change('u', START)] });
    expect(await sum()).toBe(23);
    expect(await value('cellarstream_freshness_seconds_count', { resource: 'orders' })).toBe(4);
  });

  it('and not changes that left the modification time as it was, as their time is unknown', async () => {
    const { page, value } = service();
    const updatedBefore = Date.parse('2020-01-01T00:00:00Z');
    const old = { ...change('u', updatedBefore), before: {}, updatedBefore };
    page({ lane: 'sweep', changes: [old, { ...old, updatedAt: START - 4_000 }] });
    const orders = { resource: 'orders' };
    expect(await value('cellarstream_freshness_seconds_sum', orders)).toBe(4);
    expect(await value('cellarstream_freshness_seconds_count', orders)).toBe(1);
    expect(await value('cellarstream_events_published_total', { ...orders, op: 'u' })).toBe(2);
  });

  it('take the difference of the clocks from it, where there is one that can be told', async () => {
    const { hooks, page, value } = service();
    const sum = () => value('cellarstream_freshness_seconds_sum', { resource: 'orders' });
    hooks.onLogin({ lifeMs: 1_000, aheadMs: -1_400 }); // a cut off Date and a slow answer
    page({ changes: [change('u', START - 1_000)] });
    expect(await sum()).toBe(1);
    hooks.onLogin({ lifeMs: 1_000, aheadMs: 3_600_000 });
    page({ changes: [change('u', START + 3_599_000)] });
    expect(await sum()).toBe(2);
    expect(await value('cellarstream_api_clock_ahead_seconds')).toBe(3_600);
    page({ changes: [change('u', START + 7_200_000)] }); // from the future: as fresh as can be
    expect(await sum()).toBe(2);
    expect(await value('cellarstream_freshness_seconds_count', { resource: 'orders' })).toBe(3);
  });

  it('tell when a reading came to its end, of each kind', async () => {
    const { hooks, page, pass, value } = service();
    const last = 'cellarstream_last_complete_scan_timestamp_seconds';
    page({ completes: true });
    pass(60_000);
    page({ completes: false });
    page({ lane: 'sweep', completes: true });
    expect(await value(last, { resource: 'orders', lane: 'poll' })).toBe(SECONDS);
    expect(await value(last, { resource: 'orders', lane: 'sweep' })).toBe(SECONDS + 60);
    expect(
      await value('cellarstream_scans_completed_total', { resource: 'orders', lane: 'poll' }),
    ).toBe(1);
    hooks.onEmpty({ resource: 'inventory' });
    expect(await value(last, { resource: 'inventory', lane: 'first-read' })).toBe(SECONDS + 60);
  });

  it('count what readings met, and deletions that are held until a sweep finds no reason', async () => {
    const { hooks, value } = service();
    const resource = 'inventory';
    hooks.onTrouble({ resource, trouble: 'stepped-back', offset: 990 });
    hooks.onStale({ resource, held: 3, ageMs: 0 });
    expect(await value('cellarstream_stale_answers_total', { resource })).toBe(1);
    expect(
      await value('cellarstream_scan_troubles_total', { resource, trouble: 'stepped-back' }),
    ).toBe(1);
    const counts = { resource, number: 1, records: 9 };
    const swept = { ...counts, level: 'read', canProve: true, canBeAsked: false } as const;
    const held = () => value('cellarstream_deletes_held_records', { resource });
    expect(await held()).toBeUndefined(); // a process before this one may have held some
    hooks.onHeld({ resource, gone: 60, known: 200, limitPercent: 5 });
    hooks.onSwept({ ...swept, proof: 'exact' });
    expect(await held()).toBe(60);
    hooks.onSwept({ ...swept, proof: 'complete' });
    expect(await held()).toBe(0);
    const sweeps = (deletions: string) =>
      value('cellarstream_sweeps_total', { resource, deletions });
    expect([await sweeps('known'), await sweeps('unknown')]).toEqual([1, 1]);
    hooks.onSwept({ ...swept, proof: 'complete', canBeAsked: true });
    expect(await sweeps('known')).toBe(2);
    hooks.onSwept({ ...swept, proof: 'complete', level: 'agreed' });
    hooks.onSwept({ ...swept, proof: 'complete', canProve: false });
    expect([await sweeps('known'), await sweeps('unknown'), await sweeps('never')]).toEqual([
      ...[3, 1, 1],
    ]);
    hooks.onRefused({ resource: 'orders', error: REFUSED });
    expect(await value('cellarstream_single_reads_refused_total', { resource: 'orders' })).toBe(1);
  });

  it('show the level of the newest full scan, by a sweep or a certificate', async () => {
    const { hooks, value } = service();
    const level = async () => {
      const values = await Promise.all(
        READING_LEVELS.map((each) =>
          value('cellarstream_reading_level', { resource: 'inventory', level: each }),
        ),
      );
      return READING_LEVELS.filter((_, nth) => values[nth] === 1);
    };
    const sweep = (of: ReadingLevel | null) =>
      hooks.onSwept({
        ...{ resource: 'inventory', number: 1, records: 9, proof: 'complete', level: of },
        ...{ canProve: true, canBeAsked: false },
      });
    expect(await level()).toEqual([]);
    sweep('whole');
    expect(await level()).toEqual(['whole']);
    const certificate = certificateOf({}, { proof: 'exact' });
    hooks.onCertified({ resource: 'inventory', certificate, level: 'counted' });
    expect(await level()).toEqual(['counted']);
    sweep(null);
    expect(await level()).toEqual([]);
  });

  it('count retries by who did not answer and why, and resources that can not go on', async () => {
    const { hooks, page, value } = service();
    const retry = { error: REFUSED, count: 1, delayMs: 100 };
    hooks.onRetry({ what: 'kafka', ...retry });
    hooks.onRetry({
      what: 'orders',
      resource: 'orders',
      ...retry,
      error: new CellarstreamError('API_STATUS', '500'),
    });
    hooks.onRetry({ what: 'state folder', resource: 'orders', ...retry, error: new Error('bug') });
    const retries = 'cellarstream_retries_total';
    expect(
      await value(retries, { service: 'kafka', resource: 'all', code: 'KAFKA_UNREACHABLE' }),
    ).toBe(1);
    expect(await value(retries, { service: 'api', resource: 'orders', code: 'API_STATUS' })).toBe(
      1,
    );
    expect(await value(retries, { service: 'state', resource: 'orders', code: 'other' })).toBe(1);

    const failed = () => value('cellarstream_resource_failed', { resource: 'orders' });
    expect(await failed()).toBe(0);
    hooks.onFailed({
      resource: 'orders',
      error: new CellarstreamError('KEY_FIELDS', 'none'),
      delayMs: 60_000,
    });
    expect(await failed()).toBe(1);
    expect(
      await value('cellarstream_resource_failures_total', {
        resource: 'orders',
        code: 'KEY_FIELDS',
      }),
    ).toBe(1);
    page({ known: 3 });
    expect(await failed()).toBe(0);
    hooks.onFailed({ resource: 'orders', error: REFUSED, delayMs: 60_000 });
    hooks.onEmpty({ resource: 'orders' });
    expect(await failed()).toBe(0);
    expect(await value('cellarstream_images_stored', { resource: 'orders' })).toBe(0);
  });

  it('count transactions by their end, and messages of those that were committed', async () => {
    const { hooks, value } = service();
    const orders = { resource: 'orders' };
    const transactions = (outcome: string) =>
      value('cellarstream_transactions_total', { ...orders, outcome });
    hooks.onReady(orders);
    hooks.onCommitted({ ...orders, outcome: 'committed', elapsedMs: 40, messages: 3 });
    hooks.onCommitted({ ...orders, outcome: 'failed', elapsedMs: 4_000, messages: 50 });
    hooks.onReady(orders);
    hooks.onCommitted({ ...orders, outcome: 'fenced', elapsedMs: 10, messages: 1 });
    expect(await Promise.all(['committed', 'failed', 'fenced'].map(transactions))).toEqual([
      1, 1, 1,
    ]);
    expect(await value('cellarstream_transaction_duration_seconds_sum', orders)).toBeCloseTo(4.05);
    expect(await value('cellarstream_kafka_messages_total', orders)).toBe(3);
    expect(await value('cellarstream_resource_openings_total', orders)).toBe(2);
    expect(await value('cellarstream_takeovers_total', orders)).toBe(0);
    hooks.onTakenOver(orders);
    expect(await value('cellarstream_takeovers_total', orders)).toBe(1);
  });

  it('count dead letters by their reason, and changes of a schema, not its first', async () => {
    const { hooks, value } = service();
    const resource = 'inventory';
    hooks.onRejected({ resource, reason: 'no-key', offset: 0 });
    expect(await value('cellarstream_dead_letters_total', { resource, reason: 'no-key' })).toBe(1);
    for (const schemaId of [7, 7, 9]) hooks.onSchema({ resource, schemaId });
    expect(await value('cellarstream_schema_id', { resource })).toBe(9);
    expect(await value('cellarstream_schema_changes_total', { resource })).toBe(1);
  });

  it('tell how far an initial snapshot is', async () => {
    const { hooks, value } = service();
    hooks.onProgress({ resource: 'orders', read: 500, total: 9_000, done: false });
    const orders = { resource: 'orders' };
    expect(await value('cellarstream_first_read_records', orders)).toBe(500);
    expect(await value('cellarstream_first_read_expected_records', orders)).toBe(9_000);
    expect(await value('cellarstream_first_read_complete', orders)).toBe(0);
    hooks.onProgress({ resource: 'orders', read: 9_000, total: 9_000, done: true });
    expect(await value('cellarstream_first_read_complete', orders)).toBe(1);
  });

  it('count what becomes of signals and of stored images', async () => {
    const { hooks, value } = service();
    const orders = { resource: 'orders' };
    hooks.onResync({ ...orders, id: 'a', status: 'refused', events: 0, message: 'no such order' });
    hooks.onSignalIgnored({ partition: 0, offset: '1', reason: 'no JSON' });
    hooks.onSignalsFailed({ error: REFUSED, delayMs: 100 });
    hooks.onDiscarded({ reason: 'a checksum is wrong' });
    hooks.onRestored({ ...orders, images: 300 });
    expect(await value('cellarstream_resyncs_total', { ...orders, result: 'refused' })).toBe(1);
    expect(await value('cellarstream_signals_ignored_total')).toBe(1);
    expect(await value('cellarstream_signal_failures_total')).toBe(1);
    expect(await value('cellarstream_image_stores_discarded_total')).toBe(1);
    expect(await value('cellarstream_images_restored_total', orders)).toBe(300);
  });

  it('say whether it is ready, and each cause why not', async () => {
    let causes: readonly ('kafka' | 'stale')[] = ['kafka'];
    const readiness = () => ({ ready: causes.length === 0, reasons: [], causes });
    const { value } = service({ readiness });
    expect(await value('cellarstream_ready')).toBe(0);
    expect(await value('cellarstream_not_ready', { cause: 'kafka' })).toBe(1);
    expect(await value('cellarstream_not_ready', { cause: 'stale' })).toBe(0);
    causes = [];
    expect(await value('cellarstream_ready')).toBe(1);
    expect(await value('cellarstream_not_ready', { cause: 'kafka' })).toBe(0);
  });

  it('tell of the process what dashboards rely on, and which version it is', async () => {
    const { series } = service();
    const { types, samples } = await series();
    for (const [name, type] of PROCESS_METRICS)
      expect([name, types.get(name)]).toEqual([name, type]);
    expect(samples.filter(({ labels }) => labels.account !== 'estate')).toEqual([]);
    const build = samples.find(({ name }) => name === 'cellarstream_build_info');
    expect(build?.labels).toMatchObject({ node: process.version, version: expect.any(String) });
  });
});

describe('whatever the API sends', () => {
  /** Everything that comes from outside, a thousand times otherwise. */
  function hostile({ hooks, page }: ReturnType<typeof service>) {
    for (let nth = 0; nth < 1_000; nth += 1) {
      const text = `ada.lovelace${nth}@example.com "\n\\`;
      const as = <T>(value: unknown) => value as T;
      hooks.onRequest({ what: text, status: 1_000 + nth, elapsedMs: NaN, waitedMs: -1 });
      hooks.onRequest({ what: 'orders', status: 100 + nth, elapsedMs: 1, waitedMs: 1 });
      hooks.onRetry({
        what: text,
        resource: text,
        error: new CellarstreamError(as(text), text),
        count: 1,
        delayMs: 1,
      });
      hooks.onFailed({ resource: text, error: new Error(text), delayMs: 1 });
      hooks.onRejected({ resource: text, reason: as(text), offset: nth });
      hooks.onTrouble({ resource: text, trouble: as(text), offset: nth });
      hooks.onSchema({ resource: text, schemaId: nth });
      hooks.onHeld({ resource: text, gone: 1, known: 1, limitPercent: 1 });
      hooks.onCommitted({ resource: text, outcome: as(text), elapsedMs: Infinity, messages: 1 });
      hooks.onResync({ resource: text, id: text, status: as(text), events: 1, message: text });
      hooks.onProgress({ resource: text, read: nth, total: nth, done: false });
      hooks.onDiscarded({ reason: text });
      hooks.onSignalIgnored({ partition: 0, offset: text, reason: text });
      page({
        resource: text,
        lane: as(text),
        changes: [{ ...change(as(text), NaN), key: text, changed: [text] }],
      });
      page({
        statusChanges: [
          {
            key: text,
            change: {
              subject: as(text),
              subjectId: text,
              field: as(text),
              from: text,
              to: text,
              changedAt: null,
            },
          },
        ],
      });
    }
    hooks.onStart({
      quotas: () =>
        Array.from({ length: 1_000 }, (_, nth) => ({ name: `list${nth}`, used: nth, limit: 1 })),
    });
  }

  it('the number of series stays as it is', async () => {
    const one = service();
    hostile(one);
    const { samples } = await one.series();
    const before = (await service().series()).samples;
    const own = (all: typeof samples) => all.filter(({ name }) => name.startsWith('cellarstream_'));
    const added = own(samples).length - own(before).length;
    // `other`s, classes of statuses, and gauges that were not known before.
    expect(added).toBeLessThan(150);
    expect(
      await one.value('cellarstream_dead_letters_total', { resource: 'other', reason: 'other' }),
    ).toBe(1_000);
  });

  it('a service that reads all lists has less than a thousand and a half of them', async () => {
    const { samples } = await service({ resources: RESOURCES }).series();
    expect(samples.length).toBeLessThan(1_500);
  });

  it('no text of it is told', async () => {
    const one = service();
    hostile(one);
    const { page, text } = one;
    const personal = { email: 'ada@example.com', last_name: 'Lovelace' };
    page({
      changes: [
        {
          ...change('u', START),
          key: 'key-100234',
          before: personal,
          after: personal,
          changed: ['email'],
        },
      ],
    });
    const told = await text();
    for (const telling of [
      'ada@',
      'ada.',
      'lovelace',
      'Lovelace',
      'example.com',
      '100234',
      '10.0.0.1',
      'email',
    ])
      expect(told).not.toContain(telling);
  });
});
