import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Published } from '../../../src/observe/hooks.ts';
import type { Cause } from '../../../src/ops/status/causes.ts';
import { Warnings } from '../../../src/ops/status/warnings.ts';

const A_MINUTE = 60_000;

function told() {
  let at = 1_000_000;
  const model = new Warnings(() => at, WINE.lists);
  const { hooks } = model;
  const published = (resource: string) => ({ resource }) as Published;
  return {
    ...hooks,
    page: (resource: string) => hooks.onPublished(published(resource)),
    pass: (ms: number) => (at += ms),
    kinds: () => model.all([]).map(({ kind, resource }) => [kind, resource]),
    texts: (causes: readonly Cause[] = []) => model.all(causes).map(({ text }) => text),
  };
}

describe('warnings', () => {
  it('say how a list reads dates until it reads them as written', () => {
    const { onDates, kinds, texts, pass } = told();
    const usual = {
      parameter: 'modifiedFromDate',
      stamp: 'updated_at',
      isUsualForm: true,
      offsetMs: 0,
      longestMs: null,
    };
    const plain = { ...usual, form: 'f', noDates: null };
    onDates({ ...plain, resource: 'orders', offsetMs: -3.5 * 3_600_000 });
    onDates({ ...plain, resource: 'products', form: null, noDates: 'ignored' });
    pass(1e9);
    expect(kinds()).toEqual([
      ['dates', 'orders'],
      ['dates', 'products'],
    ]);
    expect(texts()).toEqual([
      'the API reads modifiedFromDate with an offset of -3:30 h from the time zone of updated_at: windows are longer by as much',
      'the list ignores modification dates: the list is not polled; changes are found by repeated full scans',
    ]);
    onDates({ ...plain, resource: 'orders' });
    expect(kinds()).toEqual([['dates', 'products']]);
  });

  it('say that deletions are held until a sweep holds none', () => {
    const { onHeld, onSwept, kinds, texts, pass } = told();
    const swept = {
      resource: 'orders',
      number: 1,
      records: 70,
      proof: 'exact',
      level: 'counted',
      canProve: true,
      canBeAsked: true,
    } as const;
    onHeld({ resource: 'orders', gone: 30, known: 100, limitPercent: 5 });
    onSwept(swept);
    pass(1e9);
    expect(kinds()).toEqual([['deletions-held', 'orders']]);
    expect(texts()[0]).toMatch(/^30 of 100 records are missing from the newest full scan: /);
    onSwept(swept);
    expect(kinds()).toEqual([]);
  });

  it('say that deletions are unknown after three sweeps and ten minutes without proof', () => {
    const { onSwept, kinds, pass } = told();
    const swept = (proof: 'exact' | 'complete', canProve = true) =>
      onSwept({
        ...{ resource: 'inventory', number: 1, records: 9, proof, canProve, canBeAsked: false },
        level: proof === 'exact' ? 'counted' : 'read',
      });
    swept('complete');
    swept('complete');
    pass(10 * A_MINUTE);
    expect(kinds()).toEqual([]);
    swept('complete');
    expect(kinds()).toEqual([['deletions-unknown', 'inventory']]);
    swept('exact');
    expect(kinds()).toEqual([]);
    for (let n = 0; n < 4; n += 1, pass(10 * A_MINUTE)) swept('complete', false);
    expect(kinds()).toEqual([]); // its description gives no proof: the level says so
  });

  it('say in one line that something was tried again, but for what readiness says already', () => {
    const { onRetry, texts, pass } = told();
    const error = new CellarstreamError('API_UNREACHABLE', 'no answer');
    for (let count = 1; count <= 2; count++) {
      for (const resource of ['orders', 'products'])
        onRetry({ what: resource, resource, error, count, delayMs: 1 });
    }
    expect(texts(['api', 'stale'])).toEqual([]);
    expect(texts(['kafka'])).toEqual([
      'the API was tried again 4 times, so far without success; the last error: no answer',
    ]);
    pass(10 * A_MINUTE);
    expect(texts()).toEqual([]);
  });

  it('say that a list answers now when it has, and no try failed since for a pause and a minute', () => {
    const { onRetry, onRequest, page, texts, pass } = told();
    const error = new CellarstreamError('API_UNREACHABLE', 'no answer');
    const retry = (resource: string, count: number) =>
      onRetry({ what: resource, resource, error, count, delayMs: 10_000 });
    const answer = (what: string, status: number | undefined) =>
      onRequest({ what, status, elapsedMs: 5, waitedMs: 0 });
    const answersNow = () => texts()[0]?.includes('answers now');
    // A page of the initial snapshot always fails; polls of the same list go on.
    for (let count = 1; count <= 5; count++) {
      retry('orders', count);
      for (let poll = 0; poll < 9; poll++) {
        answer('orders', 200);
        page('orders');
        expect(answersNow()).toBe(count < 3 ? undefined : false);
        pass(2_000);
      }
      answer('orders', 500);
    }
    expect(texts()).toEqual([
      'the API was tried again 5 times, so far without success; the last error: no answer',
    ]);
    retry('products', 1);
    pass(A_MINUTE + 10_000);
    answer('products', 500);
    answer('products', undefined);
    expect(answersNow()).toBe(false); // orders do
    answer('products', 304);
    expect(answersNow()).toBe(false);
    answer('products', 200);
    expect(texts()).toEqual([
      'the API was tried again 6 times and answers now; the last error: no answer',
    ]);
    retry('orders', 6);
    pass(9_999);
    answer('orders', 200); // within the pause: another request's
    pass(A_MINUTE + 1);
    expect(answersNow()).toBe(false);
    answer('orders', 200);
    expect(answersNow()).toBe(true);
  });

  it('take a page that is committed as the word of Kafka for its resource, and of nobody else', () => {
    const { onRetry, page, texts } = told();
    for (const what of ['kafka', 'orders']) {
      for (let count = 1; count <= 3; count++)
        onRetry({ what, resource: 'orders', error: new Error('no answer'), count, delayMs: 1 });
    }
    page('products');
    expect(texts().filter((text) => text.includes('answers now'))).toEqual([]);
    page('orders');
    expect(texts().filter((text) => text.includes('answers now'))).toEqual([
      'Kafka was tried again 3 times and answers now; the last error: no answer',
    ]);
  });

  it('say nothing of a try or two', () => {
    const { onRetry, onLogin, onReady, onSignalsFailed, kinds, texts } = told();
    const error = new Error('no answer');
    onRetry({ what: 'login', error, count: 1, delayMs: 1 });
    onRetry({ what: 'kafka', error, count: 1, delayMs: 1 });
    onRetry({ what: 'kafka', error, count: 2, delayMs: 1 });
    onLogin();
    onReady();
    onSignalsFailed({ error, delayMs: 1 });
    onSignalsFailed({ error, delayMs: 1 });
    expect(kinds()).toEqual([]);
    for (let count = 3; count < 9; count++) onRetry({ what: 'kafka', error, count, delayMs: 1 });
    onReady();
    expect(kinds()).toEqual([['tried-again', null]]);
    expect(texts()[0]).toMatch(/^Kafka was tried again 8 times and answers now; /);
  });

  it('count what happens again, the newest first, and forget it when it is long ago', () => {
    const { onTrouble, onDiscarded, onRejected, onSignalsFailed, onRefused, texts, pass } = told();
    onDiscarded({ reason: 'a checksum is wrong' });
    pass(1);
    onTrouble({ resource: 'orders', trouble: 'unsettled', offset: 10 });
    onTrouble({ resource: 'orders', trouble: 'unsettled', offset: 20 });
    pass(1);
    onRejected({ resource: 'orders', reason: 'no-key', offset: 0 });
    onRejected({ resource: 'orders', reason: 'no-key', offset: 0 });
    pass(1);
    onRefused({ resource: 'orders', error: new Error('404') });
    pass(1);
    for (let n = 0; n < 3; n++) onSignalsFailed({ error: new Error('no topic'), delayMs: 5_000 });
    expect(texts()).toEqual([
      "the topic of signals can't be read or written, so requests to publish records again (resyncs) wait: no topic",
      'the API refused requests for single records (once): 404',
      '2 records went to dead letters: no-key',
      'every scan of the list showed fewer records than total_records, or in a changed order: records may be missing in the topic (2 times)',
      'the store of published records may be damaged and is being rebuilt from Kafka: a checksum is wrong',
    ]);
    pass(10 * A_MINUTE);
    expect(texts()).toHaveLength(3);
    pass(50 * A_MINUTE);
    expect(texts()).toEqual([]);
  });

  it('tell a list that may lack records from one that only moves', () => {
    const { onTrouble, kinds } = told();
    onTrouble({ resource: 'orders', trouble: 'adrift', offset: 1 });
    onTrouble({ resource: 'inventory', trouble: 'unsettled', offset: 1 });
    expect(kinds().sort()).toEqual([
      ['list-moved', 'orders'],
      ['list-unsettled', 'inventory'],
    ]);
  });

  it('name the fields that differ in every answer, and the setting for them, for as long as the process runs', () => {
    const { onVolatile, texts, kinds, pass } = told();
    onVolatile({ resource: 'products', fields: ['/seen', '/images/url'] });
    pass(24 * 60 * A_MINUTE);
    expect(kinds()).toEqual([['volatile-fields', 'products']]);
    expect(texts()[0]).toMatch(
      /^fields that differ in every response are .*: \/seen, \/images\/url\. .* VOLATILE_FIELDS=products:\/seen,products:\/images\/url$/,
    );
    onVolatile({
      resource: 'orders',
      fields: Array.from({ length: 50 }, (_, n) => `/${n}`.repeat(90)),
    });
    expect(Math.max(...texts().map((text) => text.length))).toBeLessThan(1_000);
    expect(texts()[0]).toMatch(
      /: 50 fields, among them .* add each to VOLATILE_FIELDS as orders:\/FIELD$/,
    );
  });

  it('are few, whatever the errors say', () => {
    const { onRefused, onTrouble, texts } = told();
    for (let n = 0; n < 1_000; n++) {
      onRefused({ resource: 'orders', error: new Error(`${n} `.repeat(1_000)) });
      onTrouble({ resource: 'orders', trouble: 'adrift', offset: n });
    }
    expect(texts()).toHaveLength(2);
    expect(Math.max(...texts().map((text) => text.length))).toBeLessThan(700);
  });
});
