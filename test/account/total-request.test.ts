import { defer, map, timer, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { pageLanes } from '../../src/account/page-lane.ts';
import type { ListDescription } from '../../src/description/description.ts';
import { readingRules } from '../../src/description/levels.ts';
import { parseDescription } from '../../src/description/read-description.ts';
import { LogicalClock } from '../../src/streams/http/logical-clock.ts';
import type { ListQuery } from '../../src/streams/http/request-plan.ts';
import { nextSweep, NO_SWEEP, sweepAfter } from '../../src/streams/paging/sweep-progress.ts';
import type { ScanTrouble } from '../../src/streams/paging/scan-trouble.ts';
import { ignoredFields } from '../../src/streams/paging/standstill.ts';
import { keyOfFields } from '../../src/streams/records/key-of.ts';
import { records } from '../support/records.ts';
import { virtualTime } from '../support/virtual-time.ts';

const keyOf = keyOfFields(['id']);
const TOTAL = { path: '/things/count', at: '' };

function listOf(keys: object): ListDescription {
  const list = { path: '/things', records: '', key: 'id', total: TOTAL, ...keys };
  const file = { format: 1, api: 'shop', auth: 'none', quota: '5/s', lists: { things: list } };
  return parseDescription(JSON.stringify(file), 'shop.json').lists[0]!;
}

const BY_OFFSET = listOf({
  ...{ paging: 'offset', limit: 21, query: { first: '{offset}', max: '{limit}' } },
});
const BY_CURSOR = listOf({ paging: 'cursor', next: '/next', query: { cursor: '{cursor}' } });
const WHOLE = listOf({ paging: 'none' });

const ids = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, nth) => from + nth);

interface Options {
  readonly query?: object;
  /** The ids in the list when a request is answered, by the number of requests before it. */
  readonly rows: (request: number) => readonly number[];
  /** The ids that the API counts, where it counts others than it lists. */
  readonly counted?: (request: number) => readonly number[];
}

/** Scans the list in virtual time. */
function scanned(list: ListDescription, { query = {}, rows, counted = rows }: Options) {
  const clock = new LogicalClock();
  const asked: string[] = [];
  const troubles: ScanTrouble[] = [];
  const totals: (number | undefined)[] = [];
  let sweep = nextSweep(NO_SWEEP, 0);
  const scheduler = virtualTime();
  const request = ({ isTotal, offset = 0, pageSize = 100, cursor }: ListQuery) =>
    defer(() => {
      const nth = asked.push(isTotal ? 'total' : `page ${cursor ?? offset}`) - 1;
      const begin = clock.begin();
      const from = Number(cursor ?? offset);
      const size = list.paging === 'none' ? Infinity : Math.min(pageSize, 21);
      return timer(10, scheduler).pipe(
        map(() => {
          const all = rows(nth);
          const data = isTotal ? [] : all.slice(from, from + size).map((id) => ({ id }));
          const isMore = list.paging === 'offset' ? data.length > 0 : from + size < all.length;
          return {
            data: records(data, keyOf),
            total: isTotal ? counted(nth).length : undefined,
            hasNext: isMore && list.paging !== 'none',
            ...(isMore && list.paging === 'cursor' && { next: String(from + size) }),
            ...{ span: clock.answered(begin), serverTime: undefined },
          };
        }),
      );
    });
  scheduler.run(() => {
    const open = pageLanes({
      task: {
        config: { poll: { pageSize: 100 } } as never,
        ...{ list, scheduler },
        hooks: {
          onDropped: () => undefined,
          onTrouble: ({ trouble }) => void troubles.push(trouble),
        },
      },
      ...{ logicalClock: clock, keyOf, requestIntervalMs: 0 },
      leftOut: ignoredFields([], () => undefined),
    });
    const lane = open((work) => work, 1, request);
    const seen = new Set<string>();
    lane
      .scan(query)
      .pipe(
        map((page) => {
          totals.push(page.answer.total);
          const keys = page.answer.data.map(({ key }) => key!).filter((key) => !seen.has(key));
          for (const key of keys) seen.add(key);
          sweep = sweepAfter(sweep, page, {
            ...{ fresh: keys.length, leftOut: 0, rejectedAt: [], isConsistent: true },
            ...{ ordered: true, isPolled: false, rules: readingRules(list), pageSize: 100 },
            ...{ now: scheduler.now(), proofMs: 60_000 },
          });
          lane.settler(page.answer.span)();
        }),
        toArray(),
      )
      .subscribe();
  });
  return { asked, troubles, totals, proof: sweep.proof, isIdle: clock.oldest() === Infinity };
}

describe('a total that has a request of its own', () => {
  it('is asked for before and after a reading, and is its total where it held still', () => {
    const { asked, totals, proof } = scanned(BY_CURSOR, { rows: () => ids(1, 30) });
    expect(asked).toEqual(['total', 'page 0', 'page 21', 'total']);
    expect(totals).toEqual([30, 30]);
    expect(proof).toBe('exact');
  });

  it.each<[string, ListDescription]>([
    ['several pages', BY_CURSOR],
    ['one page', WHOLE],
  ])('proves nothing where it changed meanwhile: %s', (_, list) => {
    // Number 3 is deleted during the reading, which missed number 4: it read as many records as the second total says.
    const listed = without(ids(1, 30), 4);
    const counted = (request: number) => (request === 0 ? ids(1, 30) : without(ids(1, 30), 3));
    const { proof } = scanned(list, { rows: () => listed, counted });
    expect(proof).toBe('complete');
  });

  it('does not make a reading unsettled because it moved, where anchors show that nothing was missed', () => {
    const rows = (request: number) => (request < 2 ? ids(1, 60) : without(ids(1, 60), 50));
    const { troubles, proof } = scanned(BY_OFFSET, { rows });
    expect(troubles).not.toContain('unsettled');
    expect(proof).toBe('anchored');
  });

  it('shows that the API lists fewer records than it counts', () => {
    const { proof } = scanned(BY_OFFSET, { rows: () => ids(1, 47), counted: () => ids(1, 60) });
    expect(proof).toBe('complete');
  });

  it('is not asked for by a poll', () => {
    expect(scanned(BY_CURSOR, { rows: () => ids(1, 3), query: { from: 'x' } }).asked).toEqual([
      'page 0',
    ]);
  });

  it('leaves no read open', () => {
    expect(scanned(BY_CURSOR, { rows: () => ids(1, 30) }).isIdle).toBe(true);
  });
});

function without(all: readonly number[], gone: number): readonly number[] {
  return all.filter((id) => id !== gone);
}
