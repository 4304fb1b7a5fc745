import { map, of, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Api } from '../src/api.ts';
import { resourceReads } from '../src/resource-reads.ts';
import type { Reading, ResourceReadsOptions } from '../src/resource-reads.ts';
import type { ReadClock } from '../src/streams/read-clock.ts';
import type { Answer, ListQuery } from '../src/streams/request.ts';
import { NO_SWEEP } from '../src/streams/sweep-progress.ts';
import type { Limit } from '../src/streams/token-bucket.ts';
import { virtualTime } from './support/virtual-time.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const LATENCY_MS = 10;
const free: Limit = (source) => source;

/** Reads in virtual time from a list that answers every query with these orders. */
function reading(
  orders: () => readonly object[],
  work: (reads: {
    readonly readings$: Observable<Reading>;
    readonly readAgain: (key: string) => void;
    readonly asked: readonly ListQuery[];
    readonly at: (ms: number, then: () => void) => void;
  }) => void,
  from: ResourceReadsOptions['from'] = {
    firstRead: { startedAt: null, position: null, done: false },
    since: null,
  },
): void {
  const scheduler = virtualTime();
  scheduler.run(() => {
    const asked: ListQuery[] = [];
    const list =
      (clock?: ReadClock) =>
      (query: ListQuery): Observable<Answer> => {
        asked.push(query);
        const begin = clock!.begin();
        return timer(LATENCY_MS, scheduler).pipe(
          map(() => ({
            data: orders() as Answer['data'],
            pagination: { total_records: orders().length, has_next_page: false },
            span: clock!.answered(begin),
            serverTime: START + scheduler.now(),
          })),
        );
      };
    const tokens = { token$: of({ serverTime: START }) };
    const api = { tokens, list: (_: unknown, clock?: ReadClock) => list(clock) };
    const reads = resourceReads({
      resource: 'orders',
      config: {
        poll: { lookbackMs: 1_000, pageSize: 100, sweepIntervalMs: 86_400_000 },
      } as ResourceReadsOptions['config'],
      api: api as unknown as Api,
      lanes: { poll: free, firstRead: free, sweep: free, spacingMs: () => 100 },
      keyFields: ['order_number'],
      from,
      firstReadDone: () => true,
      scheduler,
      sweep: () => ({ ...NO_SWEEP, beganAt: scheduler.now() }),
      records: { count: () => 0, unseen: () => ({ keys: [], next: undefined }) },
      hooks: {},
    });
    const at = (ms: number, then: () => void) => void scheduler.schedule(then, ms);
    work({ ...reads, asked, at });
  });
}

const order = (n: number, updated_at?: string) => ({
  order_number: n,
  ...(updated_at && { updated_at }),
});
const windows = (asked: readonly ListQuery[]) =>
  asked.flatMap(({ modifiedFromDate: from }) => (from === undefined ? [] : [Date.parse(from)]));

describe('resourceReads', () => {
  it('stops asking while nothing is committed, however many windows that would be', () => {
    reading(
      () => [order(1, '2025-12-31T23:59:00.000Z')],
      ({ readings$, asked, at }) => {
        const seen: Reading[] = [];
        const reading$ = readings$.subscribe((page) => seen.push(page));
        let stopped = 0;
        at(10_000, () => {
          stopped = asked.length;
          expect(stopped).toBe(3); // the first read, and two polls
          seen.forEach(({ settle }) => settle());
        });
        at(20_000, () => {
          expect(asked.length).toBe(stopped + 2);
          reading$.unsubscribe();
        });
      },
    );
  });

  it('keeps its window while no order tells of the clock that stamps them', () => {
    const since = START - 60_000;
    let orders: object[] = [];
    reading(
      () => orders,
      ({ readings$, asked, at }) => {
        const reading$ = readings$.subscribe(({ settle }) => settle());
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
      { firstRead: { startedAt: START, position: null, done: true }, since },
    );
  });

  it('begins its windows before the first read when the list is empty, for clocks that are behind', () => {
    reading(
      () => [],
      ({ readings$, asked, at }) => {
        const reading$ = readings$.subscribe(({ settle }) => settle());
        at(1_000, () => {
          expect(windows(asked)[0]).toBeLessThanOrEqual(START - 15 * 60_000);
          reading$.unsubscribe();
        });
      },
    );
  });

  it('reads an order again once, however often it is asked to, and again when that decides nothing', () => {
    reading(
      () => [order(7)],
      ({ readings$, readAgain, asked, at }) => {
        const again = () => asked.filter(({ orderNumber }) => orderNumber === '7').length;
        const reading$ = readings$.subscribe((page) => {
          if (page.lane === 'reread' && again() === 1) readAgain('7');
          page.settle();
        });
        readAgain('7');
        readAgain('7');
        readAgain('no number'); // can't be asked for
        at(5_000, () => {
          expect(again()).toBe(2);
          expect(asked.some(({ orderNumber }) => orderNumber === 'no number')).toBe(false);
          reading$.unsubscribe();
        });
      },
      { firstRead: { startedAt: START, position: null, done: true }, since: START },
    );
  });
});
