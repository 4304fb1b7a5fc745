import { readingRules } from '../../../src/description/levels.ts';
import { defer, map, of, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { lanesOf } from '../../../src/account/lanes.ts';
import type { Config } from '../../../src/config/config.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { listHooks } from '../../../src/observe/list-hooks.ts';
import type { Cursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import { ListReads } from '../../../src/pipeline/reads/list-reads.ts';
import type { Task } from '../../../src/pipeline/task.ts';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import type { ListQuery } from '../../../src/streams/http/page-request.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import type { DatesFound } from '../../../src/streams/paging/list-dates.ts';
import { NO_SWEEP, sweepAfter } from '../../../src/streams/paging/sweep-progress.ts';
import { during, sharedBucket } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { volatileFields } from '../../../src/streams/records/volatile-fields.ts';
import { records } from '../../support/records.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 2, 5, 12, 34, 56, 789);

/** How a server reads dates, and writes stamps. */
interface Server {
  readonly instantOf?: (parameter: number, now: number) => number;
  /** Null: the form is not understood, and matches nothing. */
  readonly parse?: (text: string) => number | null;
  readonly stampOf?: (at: number) => string;
  /** Whether a window is refused, by its bounds and the server's time. */
  readonly refuses?: (
    from: number,
    to: number | undefined,
    now: number,
    query: ListQuery,
  ) => boolean;
  /** Whether a window that ends then is answered with no records, or with 500 until it is given up. */
  readonly hides?: (to: number | undefined, now: number) => boolean;
  readonly fails?: (to: number | undefined, now: number) => boolean;
  readonly defaultEnd?: (now: number) => number;
  readonly ignores?: boolean;
}

interface Run {
  readonly server: Server;
  readonly forMs?: number;
  /** One change each of these, ms. */
  readonly everyMs?: number;
  readonly since?: number;
  /** Changes that are told of as published by a sweep, at these times. */
  readonly swept?: readonly { readonly at: number; readonly stampedAt: number }[];
}

const isoOf = (ms: number) => new Date(ms).toISOString();
const localOf = (minutes: (at: number) => number) => (at: number) =>
  isoOf(at + minutes(at) * MINUTE).slice(0, -1);

/** Reads a list of 120 old records while others change, in virtual time; tells how long each change took to be read. */
function run({ server, forMs = 10 * MINUTE, everyMs = 20 * SECOND, ...more }: Run) {
  const { instantOf = (ms: number) => ms, parse = Date.parse, stampOf = isoOf } = server;
  const { refuses = () => false, defaultEnd = (now) => now, ignores = false } = server;
  const { hides = () => false, fails = () => false } = server;
  const scheduler = virtualTime();
  const now = () => START + scheduler.now();
  const rows = new Map(
    Array.from({ length: 120 }, (_, n) => [
      n,
      { at: START - n * n * HOUR - 3 * MINUTE, version: 0 },
    ]),
  );
  const changedAt = new Map<string, number>();
  const readAfter = new Map<string, number>();
  const asked: ListQuery[] = [];
  const found: DatesFound[] = [];
  const lanesSeen: string[] = [];
  let pollDepth = 0;
  const shown = (query: ListQuery) => {
    const { from, to } = query;
    const all = [...rows].map(([n, row]) => ({ n, ...row }));
    if (from === undefined || ignores) return all;
    const [low, high] = [parse(from), to === undefined ? undefined : parse(to)];
    if (low === null || high === null) return [];
    const begin = instantOf(low, now());
    const end = high === undefined ? undefined : instantOf(high, now());
    if (refuses(begin, end, now(), query)) return undefined;
    if (hides(end, now())) return [];
    return all.filter(({ at }) => at >= begin && at <= (end ?? defaultEnd(now())));
  };
  const list = (query: ListQuery, limit: Limit): Observable<Answer> =>
    during(
      limit,
      defer(() => {
        asked.push(query);
        const begin = clock.begin();
        const serverTime = Math.floor(now() / SECOND) * SECOND;
        const { from, to } = query;
        const end = to === undefined ? undefined : Date.parse(to);
        const isFailing = from !== undefined && fails(end, now());
        return timer(isFailing ? MINUTE : 30, scheduler).pipe(
          map(() => {
            if (isFailing) {
              clock.settle(begin);
              const context = { status: 500, givenUp: 'unanswered' };
              throw new CellarstreamError('API_STATUS', 'answered 500', { context });
            }
            const rowsShown = shown(query);
            if (!rowsShown) {
              clock.settle(begin);
              const context = { status: 400 };
              throw new CellarstreamError('API_STATUS', 'answered 400', { context });
            }
            const { offset = 0, pageSize = 100 } = query;
            const page = rowsShown.slice(offset, offset + pageSize);
            const data = page.map(({ n, at, version }) => ({
              order_number: n,
              updated_at: stampOf(at),
              version,
            }));
            return {
              data: records(data, keyOfFields(['order_number'])),
              total: rowsShown.length,
              hasNext: offset + pageSize < rowsShown.length,
              span: clock.answered(begin),
              serverTime,
            };
          }),
        );
      }),
    );
  const clock = new LogicalClock();
  scheduler.run(() => {
    const poll = { lookbackMs: MINUTE, pageSize: 100, sweepIntervalMs: DAY };
    const progress: Pick<Cursor, 'firstRead' | 'since'> = {
      firstRead: { startedAt: START, position: null, done: more.since !== undefined },
      since: more.since ?? null,
    };
    let state = { ...progress };
    let sweep = { ...NO_SWEEP, beganAt: 0 };
    const reads = new ListReads({
      task: {
        account: { tokens: { token$: of({ serverTime: START }) } } as Task['account'],
        list: listNamed(WINE, 'orders'),
        config: {
          description: WINE,
          poll: { ...poll, deleteLimitPercent: 5, deleteProofMs: MINUTE },
        } as Partial<Config> as Config,
        hooks: listHooks({ onDates: (told) => found.push(told) }, 'orders'),
        scheduler,
      },
      lanes: lanesOf({
        bucket: sharedBucket({ capacity: 100, windowMs: MINUTE, scheduler }),
        quota: { perMinute: 100, firstReadPercent: 15 },
        lists: 1,
        intervalMs: undefined,
        windowMs: MINUTE,
        scheduler,
      }),
      keyFields: ['order_number'],
      lists: { clock, volatile: volatileFields([]), snapshot: list, afterSnapshot: list },
      progress: () => state,
      checkpoint: {
        store: {
          count: () => rows.size,
          unseen: () => ({ keys: [], next: undefined }),
          isUnseen: () => false,
        },
        get sweep() {
          return sweep;
        },
      },
    });
    const reading$ = reads.batches$.subscribe((batch) => {
      lanesSeen.push(batch.lane);
      if (batch.lane === 'poll') pollDepth = stackDepth();
      for (const { key, json } of batch.keyed) {
        const version = `${key} ${String((json as { version: number }).version)}`;
        const at = changedAt.get(version);
        if (at !== undefined && !readAfter.has(version)) readAfter.set(version, now() - at);
      }
      if (batch.lane === 'first-read') state = { ...state, firstRead: batch.snapshot };
      if (batch.lane === 'poll') state = { ...state, since: batch.since ?? state.since };
      if (batch.lane === 'sweep' && batch.step.kind === 'page') {
        const { page } = batch.step;
        const counts = {
          ...{ isConsistent: true, ordered: true, isPolled: true, pageSize: 10 },
          rules: readingRules(listNamed(WINE, 'orders')),
          ...{ rejectedAt: [], fresh: 0, leftOut: 0, proofMs: MINUTE },
        };
        sweep = sweepAfter(sweep, page, { ...counts, now: scheduler.now() });
      }
      if (batch.lane === 'sweep' && batch.step.kind === 'end')
        sweep = { ...sweep, phase: 'waiting' as never };
      batch.settle();
    });
    let nth = 0;
    const change = () => {
      const n = (nth * 37) % 120;
      const version = ++nth;
      rows.set(n, { at: now(), version });
      changedAt.set(`${n} ${version}`, now());
    };
    for (let at = 5 * SECOND; at < forMs - 2 * MINUTE; at += everyMs)
      scheduler.schedule(change, at);
    for (const { at, stampedAt } of more.swept ?? [])
      scheduler.schedule(() => {
        const changes = [{ op: 'u', updatedAt: START + stampedAt } as Change];
        reads.onPublished({ lane: 'sweep', changes });
      }, at);
    scheduler.schedule(() => reading$.unsubscribe(), forMs);
  });
  const missed = [...changedAt.keys()].filter((version) => !readAfter.has(version));
  const waits = [...readAfter.values()].sort((a, b) => a - b);
  const slowestMs = waits.at(-1) ?? Infinity;
  const dated = asked.filter(({ from }) => from !== undefined);
  return { changes: changedAt.size, missed, slowestMs, found, asked, dated, lanesSeen, pollDepth };
}

/** Number of calls on the stack. */
function stackDepth(): number {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = Infinity;
  const { stack = '' } = new Error('depth');
  Error.stackTraceLimit = limit;
  return stack.split('\n').length;
}

const zone = (minutes: number) => ({ instantOf: (ms: number) => ms - minutes * MINUTE });

describe('polls of a list that reads dates in its own time zone', () => {
  it.each([-720, -480, -210, 330, 780])('%i minutes ahead of UTC miss no change', (minutes) => {
    const { missed, changes, slowestMs, found } = run({ server: zone(minutes) });
    expect([missed, changes]).toEqual([[], 24]);
    expect(slowestMs).toBeLessThan(20 * SECOND);
    expect(found).toMatchObject([{ offsetMs: minutes * MINUTE, noDates: null }]);
  });

  it.each([-480, 780])('and takes none later than its time, %i minutes ahead', (minutes) => {
    const refuses = (from: number, to: number | undefined, now: number) =>
      Math.max(from, to ?? from) > now;
    const { missed, slowestMs, found } = run({ server: { ...zone(minutes), refuses } });
    expect(missed).toEqual([]);
    expect(slowestMs).toBeLessThan(40 * SECOND);
    expect(found.at(-1)).toMatchObject({ offsetMs: minutes * MINUTE, noDates: null });
  });

  it('after daylight saving has ended too', () => {
    const ends = START + 5 * MINUTE;
    const instantOf = (ms: number) => (ms - 7 * -HOUR < ends ? ms + 7 * HOUR : ms + 8 * HOUR);
    const { missed, slowestMs } = run({ server: { instantOf } });
    expect(missed).toEqual([]);
    expect(slowestMs).toBeLessThan(20 * SECOND);
  });

  it('find it again when it changes, as soon as another reading has a change that they missed', () => {
    const from = START + 5 * MINUTE;
    const instantOf = (ms: number, now: number) => (now < from ? ms : ms + 8 * HOUR);
    const { missed, found } = run({
      server: { instantOf },
      forMs: 14 * MINUTE,
      swept: [{ at: 10 * MINUTE, stampedAt: 6 * MINUTE }],
    });
    expect(missed).toEqual([]);
    expect(found).toMatchObject([{ offsetMs: -8 * HOUR }]);
  });
});

describe('polls of a list whose stamps are local times', () => {
  const ends = START + 5 * MINUTE;
  const zones: readonly (readonly [string, (at: number) => number])[] = [
    ['UTC-8', () => -480],
    ['UTC+13', () => 780],
    ['UTC+5:30', () => 330],
    ['UTC-7, then UTC-8', (at) => (at < ends ? -420 : -480)],
    ['UTC+2, then UTC+1', (at) => (at < ends ? 120 : 60)],
  ];

  it.each(zones)('and whose dates are read as written miss no change: %s', (_, minutes) => {
    const { missed, slowestMs } = run({ server: { stampOf: localOf(minutes) } });
    expect(missed).toEqual([]);
    expect(slowestMs).toBeLessThan(20 * SECOND);
  });

  it.each(zones)('and whose dates are too miss no change: %s', (_, minutes) => {
    // Compared as they are written: local time with local time.
    const local = (at: number) => at + minutes(at) * MINUTE;
    const instantOf = (ms: number, now: number) => ms - (local(now) - now);
    const { missed, slowestMs } = run({ server: { stampOf: localOf(minutes), instantOf } });
    expect(missed).toEqual([]);
    expect(slowestMs).toBeLessThan(70 * SECOND); // the first ones, until their lag is known
  });
});

describe('polls of a list that refuses some dates', () => {
  const onlyFirst = (asked: readonly ListQuery[]) =>
    asked.filter(({ from, pageSize, offset }) => !from && offset === 0 && pageSize === 100).length;

  it('end at the time of the server where a later one is answered with 400', () => {
    const refuses = (from: number, to: number | undefined, now: number) =>
      Math.max(from, to ?? from) > now;
    const { missed, slowestMs, found, asked, dated } = run({ server: { refuses } });
    expect(missed).toEqual([]);
    expect(slowestMs).toBeLessThan(20 * SECOND);
    expect(found).toMatchObject([
      { form: expect.stringContaining("to the server's time") as string },
    ]);
    expect(onlyFirst(asked)).toBeLessThan(5); // no snapshot page a minute
    expect(dated.length).toBeGreaterThan(50);
  });

  it.each<[string, Server]>([
    ['as written', {}],
    ['in its own time zone', zone(-480)],
    ['in its own time zone, east of UTC', zone(345)],
  ])(
    'end at the time of the server where a later one shows nothing; dates are read %s',
    (_, server) => {
      const hides = (to: number | undefined, now: number) => to !== undefined && to > now;
      const { missed, changes, slowestMs, found } = run({ server: { ...server, hides } });
      expect([missed, changes]).toEqual([[], 24]);
      expect(slowestMs).toBeLessThan(25 * SECOND);
      const { form, noDates } = found.at(-1)!;
      expect([form, noDates]).toEqual([expect.stringContaining("to the server's time"), null]);
    },
  );

  it('have no end where each shows nothing', () => {
    const hides = (to: number | undefined, now: number) => to! > now - 5 * SECOND;
    const { missed, slowestMs, found } = run({ server: { hides } });
    expect(missed).toEqual([]);
    expect(slowestMs).toBeLessThan(20 * SECOND);
    expect(found.at(-1)).toMatchObject({
      form: expect.stringContaining('no modifiedToDate') as string,
    });
  });

  it('end at the time of the server once a later one shows nothing, and lose no change meanwhile', () => {
    const from = START + 20 * MINUTE;
    const hides = (to: number | undefined, now: number) => now > from && to! > now;
    const { missed, found } = run({ server: { hides }, forMs: 90 * MINUTE });
    expect(missed).toEqual([]);
    expect(found).toMatchObject([
      { form: expect.stringContaining("to the server's time") as string },
    ]);
  });

  it.each([
    ['later one', "to the server's time", (to: number | undefined, now: number) => to! > now],
    ['end', 'no modifiedToDate', (to: number | undefined) => to !== undefined],
  ])('take another end where each %s is answered with 500', (_, form, fails) => {
    const { missed, found, lanesSeen } = run({ server: { fails }, forMs: 15 * MINUTE });
    expect(missed).toEqual([]);
    expect(found).toMatchObject([
      { noDates: 'unanswered', reason: 'answered 500' },
      { noDates: null, form: expect.stringContaining(form) as string },
    ]);
    expect(lanesSeen.slice(-10)).toContain('poll');
  });

  it.each([
    ['now', (now: number) => now],
    ['midnight', (now: number) => now - (now % DAY)],
  ])(
    'have no end where each is refused, and lose nothing: the default is %s',
    (name, defaultEnd) => {
      const refuses = (_: number, to: number | undefined) => to !== undefined;
      const { missed, found } = run({ server: { refuses, defaultEnd } });
      expect(found).toMatchObject([
        { form: expect.stringContaining('no modifiedToDate') as string },
      ]);
      if (name === 'now') expect(missed).toEqual([]);
    },
  );

  it.each([
    ['without milliseconds', /^[^.]+Z$/],
    ['with +00:00', /^[^.]+\+00:00$/],
  ])('are written %s where other forms are refused, or match nothing', (name, form) => {
    const refuses = (...[, , , query]: Parameters<NonNullable<Server['refuses']>>) =>
      !form.test(query.from!);
    const refused = run({ server: { refuses } });
    expect([refused.missed, refused.found.at(-1)?.form]).toEqual([
      [],
      `modifiedToDate two days ahead, dates ${name}`,
    ]);
    const parse = (text: string) => (form.test(text) ? Date.parse(text) : null);
    const unread = run({ server: { parse }, forMs: 15 * MINUTE });
    expect([unread.missed, unread.found.at(-1)?.form]).toEqual([
      [],
      `modifiedToDate two days ahead, dates ${name}`,
    ]);
  });

  it('are read in parts where long windows are refused', () => {
    const refuses = (from: number, to: number | undefined, now: number) =>
      (to ?? now) - from > 10 * DAY;
    const { missed, found } = run({ server: { refuses }, since: START - 90 * DAY });
    expect(missed).toEqual([]);
    expect(found.at(-1)?.longestMs).toBeGreaterThan(2 * DAY);
  });

  it.each([
    ['refused', { refuses: () => true }],
    ['ignored', { ignores: true }],
  ])('are given up where all dates are %s, and sweeps follow one another', (noDates, server) => {
    const { missed, slowestMs, found, lanesSeen } = run({ server });
    expect(found.at(-1)).toMatchObject({ noDates, form: null });
    expect(missed).toEqual([]);
    expect(slowestMs).toBeLessThan(75 * SECOND); // at first, while the polls' requests still count
    expect(lanesSeen.filter((lane) => lane === 'sweep').length).toBeGreaterThan(20);
  });
});

it('polls of a list that reads dates as written cost two more requests an hour', () => {
  const { asked, found, missed } = run({ server: {} });
  expect([found, missed]).toEqual([[], []]);
  expect(
    asked.filter(({ pageSize, offset }) => pageSize === 100 && offset === 0).length,
  ).toBeGreaterThan(50);
});

it('polls that were refused often pass no more operators than polls that were refused once', () => {
  const refusedFor = (ms: number) => {
    const refuses = (_from: number, _to: number | undefined, now: number) => now < START + ms;
    return run({ server: { refuses }, everyMs: 10 * MINUTE, forMs: ms + 30 * MINUTE });
  };
  const [once, often] = [refusedFor(2 * MINUTE), refusedFor(2 * HOUR)];
  expect([once.missed, often.missed]).toEqual([[], []]);
  expect([once.lanesSeen.at(-1), often.lanesSeen.at(-1)]).toEqual(['poll', 'poll']);
  expect(often.pollDepth).toBe(once.pollDepth);
});
