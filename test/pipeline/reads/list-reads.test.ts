import { defer, from, map, of, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { quotas } from '../../../src/account/quotas.ts';
import type { Lanes } from '../../../src/account/quotas.ts';
import type { ResyncJob } from '../../../src/account/signal-jobs.ts';
import type { Config } from '../../../src/config/config.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { Hooks } from '../../../src/observe/hooks.ts';
import { listHooks } from '../../../src/observe/list-hooks.ts';
import type { Cursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import { ListReads } from '../../../src/pipeline/reads/list-reads.ts';
import type { ListReadsOptions } from '../../../src/pipeline/reads/list-reads.ts';
import type {
  ReadResult,
  ReadBatch,
  ResyncStep,
  SweepBatch,
} from '../../../src/pipeline/reads/read-batch.ts';
import type { Task } from '../../../src/pipeline/task.ts';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Resource } from '../../../src/description/description.ts';
import { timeFormat } from '../../../src/description/time-format.ts';
import type { TimeFormat } from '../../../src/description/time-format.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import type { ListQuery } from '../../../src/streams/http/page-request.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import { NO_SWEEP } from '../../../src/streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../../src/streams/paging/sweep-progress.ts';
import type { ProvingScan } from '../../../src/streams/paging/reading-proofs.ts';
import type { KnownRecords } from '../../../src/streams/paging/missing-keys.ts';
import type { SweepStep } from '../../../src/streams/paging/sweeps.ts';
import { during } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { volatileFields } from '../../../src/streams/records/volatile-fields.ts';
import { records } from '../../support/records.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const LATENCY_MS = 10;
/** How long what is gone has to stay so. */
const PROOF_MS = 100;

/** A query as it was asked, and the lane of the quota that it waited in. */
type Asked = ListQuery & { readonly lane: string };

/** The lane that the newest request went through. */
let passed = '';
/** A lane of its own, that lets everything pass. */
const lane = (name: string): Limit => {
  const through = <T>(work: Observable<T>) =>
    defer(() => {
      passed = name;
      return work;
    });
  return Object.assign(((source) => source) as Limit, { during: through });
};

const lanesWith = (spacingMs: Lanes['pollSpacingMs']): Lanes => ({
  poll: lane('poll'),
  lookback: lane('look-back'),
  initialSnapshot: lane('initial snapshot'),
  sweep: lane('sweep'),
  fullScan: lane('poll'),
  singleRecords: lane('ask'),
  pollSpacingMs: spacingMs,
  requestIntervalMs: 600,
});

/** Any batch, for who only looks whether something is in it. */
interface Seen extends ReadResult {
  readonly lane: ReadBatch['lane'];
  readonly step?: SweepStep | ResyncStep;
  readonly absent?: SweepBatch['absent'];
  readonly presumedSeen?: SweepBatch['presumedSeen'];
  readonly catchesUp?: boolean;
}

interface More extends Partial<
  Pick<ListReadsOptions, 'keyFields' | 'resyncs$' | 'certifications$'>
> {
  readonly lanes?: (scheduler: SchedulerLike) => Lanes;
  readonly resource?: Resource;
  readonly hooks?: Hooks;
  /** Whether the initial snapshot is done by now. Default it is. */
  readonly isDone?: () => boolean;
  readonly sweep?: () => SweepProgress;
  readonly records?: KnownRecords;
  readonly poll?: Partial<Config['poll']>;
  /** How the API writes times. Default ISO 8601. */
  readonly times?: TimeFormat;
  /** Default {@link LATENCY_MS}. */
  readonly latencyMs?: number;
  /** Default as many as there are. */
  readonly total?: number;
  /** Default every page is the last. */
  readonly hasNextPage?: (query: ListQuery) => boolean;
}

/** Records of which none has been seen by a sweep. */
const known = (count: number, ...keys: string[]): KnownRecords => ({
  count: () => count,
  unseen: () => ({ keys, next: undefined }),
  isUnseen: (_, since) => since > 0,
});
const NOTHING = known(0);

/** Reads in virtual time from a list that answers a query with these records. */
function reading(
  answers: (query: ListQuery) => readonly JsonObject[],
  work: (reads: {
    readonly batches$: Observable<Seen>;
    readonly clock: LogicalClock;
    readonly refetch: (key: string) => void;
    readonly asked: readonly Asked[];
    readonly at: (ms: number, then: () => void) => void;
  }) => void,
  from: Pick<Cursor, 'firstRead' | 'since'> = {
    firstRead: { startedAt: null, position: null, done: false },
    since: null,
  },
  more: More = {},
): void {
  const { resource = 'orders', poll, total, latencyMs = LATENCY_MS, times = WINE.times } = more;
  const { hooks = {}, isDone = () => true, records: known = NOTHING, sweep, ...others } = more;
  const { lanes = () => lanesWith(() => 100), ...options } = others;
  const { hasNextPage = () => false, keyFields = ['order_number'] } = more;
  const scheduler = virtualTime();
  scheduler.run(() => {
    const asked: Asked[] = [];
    const clock = new LogicalClock();
    const list = (query: ListQuery, limit: Limit): Observable<Answer> =>
      during(
        limit,
        defer(() => {
          asked.push({ ...query, lane: passed });
          const begin = clock.begin();
          return timer(latencyMs, scheduler).pipe(
            map(() => ({
              data: records(answers(query), keyOfFields(keyFields)),
              total: total ?? answers(query).length,
              hasNext: hasNextPage(query),
              span: clock.answered(begin),
              serverTime: START + scheduler.now(),
            })),
          );
        }),
      );
    const progress = { ...from };
    const reads = new ListReads({
      task: {
        account: { tokens: { token$: of({ serverTime: START }) } } as Task['account'],
        list: listNamed(WINE, resource),
        config: {
          description: { ...WINE, times },
          poll: {
            lookbackMs: 1_000,
            pageSize: 100,
            sweepIntervalMs: 86_400_000,
            deleteLimitPercent: 5,
            deleteProofMs: PROOF_MS,
            ...poll,
          },
          pii: { drop: [], mask: [], hmac: [], hmacKey: undefined },
        } as Partial<Config> as Config,
        hooks: listHooks(hooks, resource),
        scheduler,
      },
      lanes: lanes(scheduler),
      lists: { clock, volatile: volatileFields([]), snapshot: list, afterSnapshot: list },
      progress: () => progress,
      checkpoint: {
        store: known,
        get sweep() {
          return sweep?.() ?? { ...NO_SWEEP, beganAt: scheduler.now() };
        },
      },
      ...options,
      keyFields,
    });
    // How far the snapshot has come since is told by the test.
    Object.defineProperty(progress, 'firstRead', {
      get: () => ({ ...from.firstRead, done: isDone() }),
    });
    const at = (ms: number, then: () => void) => void scheduler.schedule(then, ms);
    work({ batches$: reads.batches$, refetch: (...of) => reads.refetch(...of), clock, asked, at });
  });
}

const kindOf = (step: Seen['step']) => (step && 'kind' in step ? step.kind : undefined);
const order = (n: number, updated_at?: string) => ({
  order_number: n,
  ...(updated_at && { updated_at }),
});
const isDone = {
  firstRead: { startedAt: START, position: null, done: true },
  since: START,
} as const;
const windows = (asked: readonly ListQuery[]) =>
  asked.flatMap(({ from }) => (from === undefined ? [] : [Date.parse(from)]));

describe('listReads', () => {
  it('stops asking while nothing is committed, however many windows that would be', () => {
    reading(
      () => [order(1, '2025-12-31T23:59:00.000Z')],
      ({ batches$, asked, at }) => {
        const seen: Seen[] = [];
        const reading$ = batches$.subscribe((page) => seen.push(page));
        let stopped = 0;
        at(10_000, () => {
          stopped = asked.length;
          expect(stopped).toBe(4); // the initial snapshot, two polls, and a probe of their dates
          seen.forEach(({ settle }) => settle());
        });
        at(20_000, () => {
          expect(asked.length).toBe(stopped + 3); // two polls, and the probe of their end
          reading$.unsubscribe();
        });
      },
    );
  });

  it('asks for the records since START_FROM with dates as the API writes them', () => {
    const times = timeFormat('epoch-s');
    reading(
      () => [order(1)],
      ({ batches$, asked, at }) => {
        const reading$ = batches$.subscribe(({ settle }) => settle());
        at(100, () => {
          const [first] = asked.filter(({ lane }) => lane === 'initial snapshot');
          expect(times.read(first?.from)).toBe(START - 15 * 3_600_000);
          expect(times.read(first?.to)).toBeGreaterThan(START);
          reading$.unsubscribe();
        });
      },
      undefined,
      { poll: { startFrom: START }, times },
    );
  });

  it('stops asking for orders again too, one at a time', () => {
    reading(
      ({ key }) => (key === '7' ? [order(7)] : []),
      ({ batches$, refetch, asked, at }) => {
        const seen: Seen[] = [];
        const reading$ = batches$.subscribe((page) => seen.push(page));
        const again = () => asked.flatMap(({ key }) => key ?? []);
        for (const key of ['7', '8', '9']) refetch(key);
        at(1_000, () => {
          expect(again()).toEqual(['7']);
          seen.filter(({ lane }) => lane === 'reread').forEach(({ settle }) => settle());
        });
        at(2_000, () => {
          expect(again()).toEqual(['7', '8']);
          reading$.unsubscribe();
        });
      },
    );
  });

  it('polls beside the initial snapshot, from its first page on', () => {
    const isOfFirstRead = ({ from }: ListQuery) => from === undefined;
    reading(
      (query) => (isOfFirstRead(query) ? [order(1), order(2)] : []),
      ({ batches$, asked, at }) => {
        const lanes: string[] = [];
        const reading$ = batches$.subscribe((page) => {
          lanes.push(page.lane);
          page.settle();
        });
        at(1_000, () => {
          expect(lanes[0]).toBe('first-read');
          expect(windows(asked).length).toBeGreaterThan(1);
          expect(isOfFirstRead(asked.at(-1)!) || isOfFirstRead(asked.at(-2)!)).toBe(true); // goes on
          reading$.unsubscribe();
        });
      },
      undefined,
      { total: 1_000, hasNextPage: isOfFirstRead, isDone: () => false },
    );
  });

  it('has what the initial snapshot has missed with the end of the first poll that began behind it', () => {
    let isCommitted = false;
    const found: string[] = [];
    reading(
      () => [order(1, new Date(START).toISOString())],
      ({ batches$, asked, at }) => {
        const reading$ = batches$.subscribe(({ lane, catchesUp = false, settle }) => {
          found.push(`${lane} ${catchesUp}`);
          settle();
        });
        at(50, () => {
          expect(asked).toHaveLength(2);
          isCommitted = true; // while a poll is under way
        });
        at(1_000, () => reading$.unsubscribe());
      },
      undefined,
      { isDone: () => isCommitted, poll: { intervalMs: 100 }, latencyMs: 40 },
    );
    expect(found.slice(0, 4)).toEqual(['first-read false', 'poll false', 'poll true', 'poll true']);
  });

  it('has not caught up with windows that what has changed is stamped too far behind for', () => {
    const stamp = new Date(START - 20 * 60_000).toISOString();
    const found: string[] = [];
    reading(
      (query) => (query.from ? [] : [order(1, stamp)]),
      ({ batches$, at }) => {
        const reading$ = batches$.subscribe(({ lane, catchesUp = false, settle }) => {
          found.push(`${lane} ${catchesUp}`);
          settle();
        });
        at(1_000, () => reading$.unsubscribe());
      },
      undefined,
      { poll: { intervalMs: 100, lookbackMs: 60_000 }, latencyMs: 40 },
    );
    expect(found.slice(0, 4)).toEqual(['first-read false', ...Array(3).fill('poll false')]);
  });

  it('keeps its window while no order tells of the clock that stamps them', () => {
    const since = START - 60_000;
    let orders: JsonObject[] = [];
    reading(
      () => orders,
      ({ batches$, asked, at }) => {
        const reading$ = batches$.subscribe(({ settle }) => settle());
        at(30_000, () => {
          // The last poll looked back ten seconds at most: its window has not moved with `Date`.
          expect(windows(asked).at(-1)).toBeGreaterThanOrEqual(since - 10_000);
          expect(windows(asked).at(-1)).toBeLessThanOrEqual(since);
          orders = [order(1, new Date(START - 300_000).toISOString())]; // stamped five minutes behind
        });
        at(60_000, () => {
          expect(windows(asked).at(-1)).toBeLessThan(START - 300_000);
          reading$.unsubscribe();
        });
      },
      { ...isDone, since },
    );
  });

  it('begins its windows before the initial snapshot when the list is empty, for clocks that are behind', () => {
    reading(
      () => [],
      ({ batches$, asked, at }) => {
        const reading$ = batches$.subscribe(({ settle }) => settle());
        at(1_000, () => {
          expect(windows(asked)[0]).toBeLessThanOrEqual(START - 15 * 60_000);
          reading$.unsubscribe();
        });
      },
    );
  });

  it('begins them there too where stamps are behind, or a new process knows nothing of them', () => {
    const behind = new Date(START - 600_000).toISOString();
    const first = (from: Pick<Cursor, 'firstRead' | 'since'> | undefined) => {
      let begins: number | undefined;
      reading(
        () => [order(1, behind)],
        ({ batches$, asked, at }) => {
          const reading$ = batches$.subscribe(({ settle }) => settle());
          at(1_000, () => {
            [begins] = windows(asked);
            reading$.unsubscribe();
          });
        },
        from,
      );
      return begins;
    };
    expect(first(undefined)).toBeLessThan(START - 600_000);
    const began = { startedAt: START, position: null, done: true };
    expect(first({ firstRead: began, since: null })).toBeLessThan(START - 600_000);
    expect(first({ firstRead: began, since: START })).toBeGreaterThan(START - 60_000);
  });

  it('reads an order again once, however often it is asked to, and again when that decides nothing', () => {
    reading(
      () => [order(7)],
      ({ batches$, refetch, asked, at }) => {
        const again = () => asked.filter(({ key }) => key === '7').length;
        const reading$ = batches$.subscribe((page) => {
          if (page.lane === 'reread' && again() === 1) refetch('7');
          page.settle();
        });
        refetch('7');
        refetch('7');
        refetch('no number'); // can't be asked for
        at(5_000, () => {
          expect(again()).toBe(2);
          expect(asked.some(({ key }) => key === 'no number')).toBe(false);
          reading$.unsubscribe();
        });
      },
      isDone,
    );
  });
});

describe('a lane that the API refuses for good', () => {
  const refusal = new CellarstreamError('API_STATUS', 'no', { context: { status: 403 } });
  const ofLane = (asked: readonly Asked[], name: string) =>
    asked.filter(({ lane }) => lane === name).map(({ offset }) => offset);

  it('leaves polls going on beside an initial snapshot, which goes on where it was once it is mended', () => {
    let isMended = false;
    let failure: unknown;
    const retried: unknown[] = [];
    reading(
      ({ offset = 0, from }) => {
        if (from !== undefined) return [order(1, '2026-01-01T00:00:00Z')];
        if (offset > 0 && !isMended) throw refusal;
        return Array.from({ length: 100 }, (_, n) => order(offset + n));
      },
      ({ batches$, asked, at }) => {
        const lanes: string[] = [];
        const reading$ = batches$.subscribe({
          next: (page) => {
            lanes.push(page.lane);
            page.settle();
          },
          error: (error: unknown) => (failure = error),
        });
        const count = (name: string) => lanes.filter((lane) => lane === name).length;
        let polls = 0;
        at(600_000, () => {
          polls = count('poll');
          expect(polls).toBeGreaterThan(30);
          expect(count('first-read')).toBe(1);
          isMended = true;
        });
        at(2_000_000, () => {
          expect(count('poll')).toBeGreaterThan(2 * polls);
          expect(count('first-read')).toBe(2);
          const snapshot = ofLane(asked, 'initial snapshot');
          expect(snapshot[0]).toBe(0);
          expect(snapshot.lastIndexOf(0)).toBe(0);
          reading$.unsubscribe();
        });
      },
      undefined,
      {
        total: 190,
        hasNextPage: ({ offset = 0, from }) => !from && offset === 0,
        isDone: () => false,
        poll: { intervalMs: 10_000 },
        hooks: { onRetry: ({ resource, error }) => retried.push([resource, error]) },
      },
    );
    expect(failure).toBeUndefined();
    expect(retried[0]).toEqual(['orders', refusal]);
  });

  it('leaves polls going on beside sweeps, which begin again once they are mended', () => {
    let isMended = false;
    let failure: unknown;
    let retries = 0;
    reading(
      ({ from }) => {
        if (from === undefined && !isMended) throw refusal;
        return [];
      },
      ({ batches$, at }) => {
        const lanes: string[] = [];
        const reading$ = batches$.subscribe({
          next: (page) => {
            lanes.push(page.lane);
            page.settle();
            if (page.lane === 'sweep') reading$.unsubscribe();
          },
          error: (error: unknown) => (failure = error),
        });
        at(600_000, () => {
          expect(lanes).not.toContain('sweep');
          expect(lanes.length).toBeGreaterThan(30);
          isMended = true;
        });
        at(2_000_000, () => expect(lanes).toContain('sweep'));
      },
      isDone,
      {
        sweep: () => ({ ...NO_SWEEP, beganAt: 0 }),
        poll: { intervalMs: 10_000, sweepIntervalMs: 60_000 },
        hooks: { onRetry: () => (retries += 1) },
      },
    );
    expect(failure).toBeUndefined();
    expect(retries).toBeGreaterThan(2);
  });

  it('ends the reading where polls are refused, and requests without dates too', () => {
    let failure: unknown;
    reading(
      () => {
        throw refusal;
      },
      ({ batches$ }) => void batches$.subscribe({ error: (error: unknown) => (failure = error) }),
      isDone,
    );
    expect(failure).toBe(refusal);
  });

  it('ends the reading where the first page of all is refused, or a list without polls', () => {
    for (const resource of ['orders', 'inventory'] as const) {
      let failure: unknown;
      reading(
        () => {
          throw refusal;
        },
        ({ batches$ }) => void batches$.subscribe({ error: (error: unknown) => (failure = error) }),
        undefined,
        { resource, isDone: () => false },
      );
      expect(failure).toBe(refusal);
    }
  });
});

describe('the sweeps of a resource', () => {
  const removing = {
    ...NO_SWEEP,
    number: 7,
    phase: 'removing',
    proof: 'exact',
  } as const;
  const provingAt = (number: number, at: number): ProvingScan => ({
    ...{ number, beganAt: at, at },
  });
  const unseen = (...keys: string[]) => known(1_000, ...keys);
  const inShort = ({ lane, step, keyed, absent, presumedSeen }: Seen) => ({
    lane,
    ...(step && { step: kindOf(step) }),
    ...(keyed.length > 0 && { records: keyed.map(({ key }) => key) }),
    ...(absent && { absent }),
    ...(presumedSeen && { presumedSeen }),
  });

  it('begin an interval after the initial snapshot, once it is dealt with', () => {
    let sweep: SweepProgress = NO_SWEEP;
    reading(
      () => [order(1)],
      ({ batches$, asked, at }) => {
        const swept = () => asked.filter(({ lane }) => lane === 'sweep').length;
        const reading$ = batches$.subscribe((page) => {
          if (page.lane !== 'first-read') return page.settle();
          at(5_000 - LATENCY_MS, () => {
            sweep = { ...sweep, beganAt: 5_000 }; // as whoever deals with it says
            page.settle();
          });
        });
        at(5_999, () => expect(swept()).toBe(0));
        at(6_001, () => {
          expect(swept()).toBe(1);
          expect(asked.at(-1)).toEqual({ offset: 0, pageSize: 100, lane: 'sweep' }); // no window
          reading$.unsubscribe();
        });
      },
      undefined,
      { sweep: () => sweep, poll: { sweepIntervalMs: 1_000, intervalMs: 60_000 } },
    );
  });

  it('ask for each order that they have missed by its number, twice, and never for what is none', () => {
    const found: ReturnType<typeof inShort>[] = [];
    let sweep: SweepProgress = removing;
    let missing = ['7', '8', 'W-9'];
    const records = { ...known(1_000), unseen: () => ({ keys: missing, next: undefined }) };
    const query = ({ key }: ListQuery) => (key === '8' ? [order(8)] : []);
    reading(
      query,
      ({ batches$, clock, asked, at }) => {
        const reading$ = batches$.subscribe((page) => {
          if (page.lane === 'sweep') found.push(inShort(page));
          if (page.presumedSeen)
            missing = missing.filter((key) => !page.presumedSeen!.includes(key));
          if (kindOf(page.step) === 'asked-once') sweep = { ...sweep, askedAt: 2 * LATENCY_MS };
          if (page.lane !== 'sweep' || kindOf(page.step) !== 'end') page.settle(); // it ends there
          if (kindOf(page.step) === 'end') clock.settle(page.span.begin);
        });
        const alone = () => asked.filter(({ key }) => key !== undefined);
        at(2 * LATENCY_MS + PROOF_MS - 1, () => {
          expect(alone()).toEqual([
            { key: '7', lane: 'ask' },
            { key: '8', lane: 'ask' },
          ]);
        });
        at(500, () => {
          expect(alone().slice(2)).toEqual([{ key: '7', lane: 'ask' }]);
          expect(clock.oldest()).toBe(Infinity); // nothing is left open
          reading$.unsubscribe();
        });
      },
      isDone,
      { sweep: () => sweep, records, poll: { intervalMs: 60_000 } },
    );
    expect(found).toEqual([
      { lane: 'sweep', step: 'judged' },
      { lane: 'sweep', step: 'asked' },
      { lane: 'sweep', step: 'asked', records: ['8'], presumedSeen: ['8'] },
      { lane: 'sweep', step: 'asked-once' },
      { lane: 'sweep', step: 'asked', absent: { keys: ['7'], since: 7 } },
      { lane: 'sweep', step: 'end' },
    ]);
  });

  it.each([
    ['the first time', removing, ['7']],
    ['again', { ...removing, askedAt: -PROOF_MS }, undefined],
  ])('do not take an order for gone when the answer contradicts itself: %s', (_, sweep, spared) => {
    reading(
      () => [],
      ({ batches$, at }) => {
        const found: Seen[] = [];
        const reading$ = batches$.subscribe((page) => {
          if (page.step) found.push(page);
          if (page.step && kindOf(page.step) === 'judged') page.settle();
        });
        at(500, () => {
          expect(found.map(({ step }) => kindOf(step))).toEqual(['judged', 'asked']);
          expect(found[1]!.absent).toBeUndefined();
          expect(found[1]!.presumedSeen).toEqual(spared);
          reading$.unsubscribe();
        });
      },
      isDone,
      { sweep: () => sweep, records: unseen('7'), poll: { intervalMs: 60_000 }, total: 1 },
    );
  });

  it('of a list without windows are all there is after the initial snapshot, one after the other', () => {
    let sweep: SweepProgress = { ...NO_SWEEP, number: 1, proof: 'exact' };
    const found: ReturnType<typeof inShort>[] = [];
    reading(
      () => [{ id: 1 }, { id: 2 }],
      ({ batches$, clock, asked, at }) => {
        let ends = 0;
        const reading$ = batches$.subscribe((page) => {
          found.push(inShort(page));
          const { number } = sweep;
          if (kindOf(page.step) === 'page') {
            const [first, newest] = [provingAt(number, -PROOF_MS), provingAt(number + 1, 0)];
            sweep = { ...removing, number: number + 1, beganAt: 0, proving: [first], newest };
          }
          if (kindOf(page.step) === 'end') {
            ends += 1;
            expect(clock.oldest()).toBe(page.span.begin); // its own: all others are settled
            expect(page.catchesUp).toBe(true); // there are no polls to do so
            sweep = { ...sweep, phase: 'done' };
          }
          if (ends < 2) page.settle();
        });
        at(30_000, () => {
          expect(windows(asked)).toEqual([]);
          const first = { offset: 0, pageSize: 100, lane: 'poll' };
          expect(asked).toEqual([first, first, first]);
          reading$.unsubscribe();
        });
      },
      undefined,
      { resource: 'inventory', keyFields: ['id'], sweep: () => sweep, records: unseen('5', 'x') },
    );
    const gone = (since: number) => ({ keys: ['5', 'x'], since });
    expect(found).toEqual([
      { lane: 'first-read', records: ['1', '2'] },
      { lane: 'sweep', step: 'page', records: ['1', '2'] },
      { lane: 'sweep', step: 'judged' },
      { lane: 'sweep', step: 'absent', absent: gone(1) },
      { lane: 'sweep', step: 'end' },
      { lane: 'sweep', step: 'page', records: ['1', '2'] },
      { lane: 'sweep', step: 'judged' },
      { lane: 'sweep', step: 'absent', absent: gone(2) },
      { lane: 'sweep', step: 'end' },
    ]);
  });

  it('say so when more is gone than may be', () => {
    const keys = Array.from({ length: 51 }, (_, k) => String(k + 1));
    const onHeld = vi.fn();
    reading(
      () => [],
      ({ batches$, asked, at }) => {
        const reading$ = batches$.subscribe();
        at(500, () => {
          expect(asked.some(({ key }) => key !== undefined)).toBe(false);
          reading$.unsubscribe();
        });
      },
      isDone,
      { sweep: () => removing, records: unseen(...keys), hooks: { onHeld } },
    );
    expect(onHeld.mock.calls).toEqual([
      [{ resource: 'orders', gone: 51, known: 1_000, limitPercent: 5 }],
    ]);
  });
});

describe('a reading that somebody waits for', () => {
  const ORDERS = 10_000;
  const A_PAGE = 1_000;
  const A_MINUTE_MS = 60_000;
  const orders = Array.from({ length: ORDERS }, (_, n) => order(n));
  const pageAt = ({ offset = 0, from }: ListQuery) =>
    from ? [] : orders.slice(offset, offset + A_PAGE);
  const hasNextPage = ({ offset = 0, from }: ListQuery) => !from && offset + A_PAGE < ORDERS;
  const quota = { perMinute: 100, loginsPerMinute: 10, scope: 'endpoint', firstReadPercent: 73 };

  /** Polls take all that they can get; somebody asks at a time. When readings have ended, and all requests. */
  function askedAt(askedAtMs: number, sweepIntervalMs: number) {
    let sweep: SweepProgress = NO_SWEEP;
    const ends: { readonly at: number; readonly answers: readonly string[] }[] = [];
    const requests: { readonly at: number; readonly isPoll: boolean }[] = [];
    let now = () => 0;
    reading(
      (query) => pageAt(query),
      ({ batches$, at }) => {
        const reading$ = batches$.subscribe((batch) => {
          const { lane, step } = batch;
          requests.push({ at: now(), isPoll: lane === 'poll' });
          if (lane === 'sweep' && step && 'kind' in step) {
            if (step.kind === 'page') {
              const phase = step.page.next ? 'reading' : 'removing';
              sweep = { ...NO_SWEEP, number: 1, beganAt: step.beganAt, phase, proof: 'exact' };
            }
            if (step.kind === 'end') {
              sweep = { ...sweep, phase: 'done' };
              const { certifyJobs = [] } = batch as SweepBatch;
              ends.push({ at: now(), answers: certifyJobs.map(({ id }) => id) });
            }
          }
          batch.settle();
        });
        at(7 * A_MINUTE_MS, () => reading$.unsubscribe());
      },
      isDone,
      {
        total: ORDERS,
        hasNextPage,
        sweep: () => sweep,
        certifications$: timer(askedAtMs).pipe(map(() => ({ id: 'fresh', resource: 'orders' }))),
        lanes: (scheduler) => {
          now = () => scheduler.now();
          const config = {
            ...{ account: 'default', quota, resources: ['orders'] },
            poll: { intervalMs: undefined },
            description: WINE,
          } as unknown as Config;
          return quotas({ config, scheduler }).lanes('orders', false);
        },
        poll: { pageSize: A_PAGE, sweepIntervalMs },
      },
    );
    const polls = (from: number) =>
      requests.filter(({ at, isPoll }) => isPoll && at >= from && at < from + A_MINUTE_MS).length;
    return { ends, polls };
  }
  const A_DAY_MS = 86_400_000;

  it('has the share of a resync, which polls leave over, and takes seconds in place of minutes', () => {
    const { ends, polls } = askedAt(2 * A_MINUTE_MS, A_DAY_MS);
    expect(ends.map(({ answers }) => answers)).toEqual([['fresh']]);
    expect(ends[0]!.at).toBeLessThan(2 * A_MINUTE_MS + 20_000); // eleven pages, at 35 a minute
    expect(polls(2 * A_MINUTE_MS)).toBeGreaterThanOrEqual(65);
    expect(polls(4 * A_MINUTE_MS)).toBeGreaterThan(90); // as ever
  });

  it('hurries one that goes on at the usual pace, too: its own begins after that', () => {
    const usual = askedAt(6 * A_MINUTE_MS, A_MINUTE_MS).ends[0]!;
    expect(usual.at).toBeGreaterThan(2 * A_MINUTE_MS); // it began after a minute
    const { ends } = askedAt(A_MINUTE_MS + 10_000, A_MINUTE_MS);
    expect(ends.slice(0, 2).map(({ answers }) => answers)).toEqual([[], ['fresh']]);
    expect(ends[1]!.at).toBeLessThan(A_MINUTE_MS + 50_000);
  });
});

describe('what is to be published again', () => {
  const resync = (id: string, more: Partial<ResyncJob> = {}): ResyncJob => ({
    id,
    resource: 'orders',
    key: null,
    since: null,
    ...more,
  });
  const all = [
    resync('list'),
    resync('one', { key: '7' }),
    resync('newer', { since: START - 86_400_000 }),
  ];
  const found = (batches: readonly Seen[]) =>
    batches.flatMap(({ step }) =>
      step && 'resync' in step ? [[step.resync.id, step.outcome?.status]] : [],
    );

  it('is read after the initial snapshot, in the lane of single orders, while polls are slower', () => {
    const seen: Seen[] = [];
    const begun: string[] = [];
    const beside: string[] = [];
    let isDone = false;
    reading(
      () => [order(7)],
      ({ batches$, asked, at }) => {
        const reading$ = batches$.subscribe((page) => {
          seen.push(page);
          const due = page.lane === 'first-read' ? 5_000 : page.lane === 'resync' ? 500 : 0;
          at(due, () => {
            isDone ||= page.lane === 'first-read';
            page.settle();
          });
        });
        at(4_900, () => expect([begun, new Set(beside)]).toEqual([[], new Set(['first-read'])]));
        at(10_000, () => {
          expect(begun).toEqual(['list', 'one', 'newer']);
          expect(found(seen)).toEqual(begun.map((id) => [id, 'done']));
          const page = { offset: 0, pageSize: 100, lane: 'ask' };
          const mine = asked.filter(({ lane }) => lane === 'ask');
          expect(mine.slice(0, 2)).toEqual([page, { key: '7', lane: 'ask' }]);
          const { from, to, ...rest } = mine[2]!;
          expect(rest).toEqual(page);
          expect(Date.parse(from!)).toBe(START - 86_401_000); // bounds may be exclusive
          expect(Date.parse(to!)).toBeGreaterThan(START + 86_400_000);
          expect(mine).toHaveLength(3);
          expect(beside).toContain('asking');
          expect(beside.at(-1)).toBe('nothing');
          reading$.unsubscribe();
        });
      },
      undefined,
      {
        resyncs$: from(all),
        isDone: () => isDone,
        hooks: { onResync: ({ id }) => begun.push(id) },
        lanes: () => lanesWith((what) => (beside.push(what), 100)),
      },
    );
  });

  it('fails where the API refuses it, and the next request has its turn', () => {
    const seen: Seen[] = [];
    const refusal = new CellarstreamError('API_STATUS', 'no', { context: { status: 400 } });
    const isFirstPage = ({ offset, from }: ListQuery) => offset === 0 && !from;
    reading(
      (query) => {
        if (query.offset !== undefined && query.offset > 0) throw refusal;
        return Array.from({ length: 100 }, (_, n) => order(n));
      },
      ({ batches$, at }) => {
        const reading$ = batches$.subscribe((page) => {
          seen.push(page);
          page.settle();
        });
        at(10_000, () => {
          expect(found(seen)).toEqual([
            ['list', undefined],
            ['list', 'failed'],
            ['one', 'done'],
            ['newer', 'done'],
          ]);
          reading$.unsubscribe();
        });
      },
      isDone,
      { resyncs$: from(all), hasNextPage: isFirstPage },
    );
  });
});
