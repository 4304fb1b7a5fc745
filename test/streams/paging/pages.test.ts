import { jsonsOf } from '../../support/records.ts';
import { defer, delay, map, of, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { PagesOptions, ScanPage } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer, keyOfId, throughJson } from './moving-list.ts';

/** Records with the ids from `first` to `last`. */
const ids = (first: number, last: number): JsonValue[] =>
  Array.from({ length: last - first + 1 }, (_, k) => ({ id: first + k }));

/** The page of a list that an honest server gives. */
const pageOf = (list: readonly JsonValue[], offset: number, pageSize: number) =>
  answer(list.slice(offset, offset + pageSize), {
    total: list.length,
    hasNext: offset + pageSize < list.length,
  });

interface Outcome {
  readonly pages: ScanPage[];
  /** What was asked for. */
  readonly offsets: number[];
  readonly troubles: ScanTrouble[];
}

/** Reads a list that is `states[n]` at the n-th request, and after them as it was last. */
function scanOf(
  states: readonly (readonly JsonValue[])[],
  options: Partial<PagesOptions> & { readonly most?: number },
): Outcome {
  const outcome: Outcome = { pages: [], offsets: [], troubles: [] };
  const { most = Infinity, ...given } = options;
  const list$ = defer(() => {
    if (outcome.offsets.length > 200) throw new Error('the scan does not end');
    return of(states[Math.min(outcome.offsets.length, states.length - 1)]!).pipe(delay(1));
  });
  let failure: unknown;
  virtualTime().run(() => {
    pages({
      request: ({ offset, pageSize }) =>
        list$.pipe(
          tap(() => outcome.offsets.push(offset)),
          map((list) => pageOf(list, offset, Math.min(pageSize, most))),
        ),
      keyOf: keyOfId,
      onTrouble: (trouble) => outcome.troubles.push(trouble),
      ...given,
    }).subscribe({
      next: (page) => outcome.pages.push(page),
      error: (error: unknown) => void (failure = error),
    });
  });
  if (failure) throw failure as Error;
  return outcome;
}

const readIds = (outcome: Outcome): Set<unknown> =>
  new Set(outcome.pages.flatMap(({ answer }) => jsonsOf(answer.data).map(keyOfId)));

describe('pages', () => {
  it('asks for the next page, a few records early, while there is one', () => {
    virtualTime().run(({ cold, expectObservable }) => {
      const list = ids(1, 8);
      const scan = pages({
        request: ({ offset, pageSize }) => cold('--(a|)', { a: pageOf(list, offset, pageSize) }),
        keyOf: keyOfId,
        pageSize: 4,
        overlap: 1,
      });
      const offsets = scan.pipe(map(({ offset, next }) => [offset, next?.offset]));

      expectObservable(offsets).toBe('--a-b-(c|)', { a: [0, 3], b: [3, 6], c: [6, undefined] });
    });
  });

  it('is one empty page when the list is empty', () => {
    virtualTime().run(({ cold, expectObservable }) => {
      const request = () => cold('--(a|)', { a: pageOf([], 0, 4) });
      const scan = pages({ request, keyOf: keyOfId }).pipe(map(({ next }) => next));

      expectObservable(scan).toBe('--(a|)', { a: undefined });
    });
  });

  it('gives up the request under way when unsubscribed, and asks for no more', () => {
    virtualTime().run(({ cold, expectObservable, expectSubscriptions }) => {
      const list = ids(1, 8);
      const first = cold(' --(a|)', { a: pageOf(list, 0, 4) });
      const second = cold('--(b|)', { b: pageOf(list, 3, 4) });
      const scan = pages({
        request: ({ offset }) => (offset === 0 ? first : second),
        keyOf: keyOfId,
        pageSize: 4,
        overlap: 1,
      }).pipe(map(({ offset }) => offset));

      expectObservable(scan, '^--!').toBe('--a-', { a: 0 });
      expectSubscriptions(first.subscriptions).toBe('^-!');
      expectSubscriptions(second.subscriptions).toBe('--^!');
    });
  });

  it('mirrors an error of a request', () => {
    virtualTime().run(({ cold, expectObservable }) => {
      const list = ids(1, 8);
      const request = ({ offset }: { offset: number }) =>
        offset === 0 ? cold('--(a|)', { a: pageOf(list, 0, 4) }) : cold<never>('-#');
      const scan = pages({ request, keyOf: keyOfId, pageSize: 4, overlap: 1 });

      expectObservable(scan.pipe(map(({ offset }) => offset))).toBe('--a#', { a: 0 });
    });
  });

  it('waits for room before each request', () => {
    virtualTime().run(({ cold, expectObservable, expectSubscriptions }) => {
      const list = ids(1, 8);
      const places = pageSlots(1);
      const requests = [0, 3, 6].map((at) => cold('-(a|)', { a: pageOf(list, at, 4) }));
      const scan = pages({
        request: ({ offset }) => requests[offset / 3]!,
        keyOf: keyOfId,
        pageSize: 4,
        overlap: 1,
        permit: () => places.acquire,
      }).pipe(map(({ offset }) => offset));
      cold('5ms x 5ms x').subscribe(() => places.release()); // at 5 ms and at 11 ms

      expectObservable(scan).toBe('      -a----b-----(c|)', { a: 0, b: 3, c: 6 });
      expectSubscriptions(requests[1]!.subscriptions).toBe('-----^!');
      expectSubscriptions(requests[2]!.subscriptions).toBe('-----------^!');
    });
  });

  it('may be subscribed to again: each reading stands alone', () => {
    virtualTime().run(({ cold, expectObservable }) => {
      const scan = pages({
        request: ({ offset }) => cold('-(a|)', { a: pageOf(ids(1, 6), offset, 4) }),
        keyOf: keyOfId,
        pageSize: 4,
        overlap: 1,
      }).pipe(map(({ offset }) => offset));

      expectObservable(scan).toBe('-a(b|)', { a: 0, b: 3 });
      expectObservable(scan, '---^').toBe('----a(b|)', { a: 0, b: 3 });
    });
  });
});

describe('a list that shrinks while it is paged', () => {
  const paging = { pageSize: 10, overlap: 2 };

  it('is read on where it was after deletions within the overlap', () => {
    const scan = scanOf([ids(1, 30), ids(2, 30)], paging);
    expect(scan.offsets).toEqual([0, 8, 16, 24]);
    expect(scan.troubles).toEqual([]);
    expect(readIds(scan).size).toBe(30);
  });

  it('is read again from a page earlier after more deletions than the overlap', () => {
    const scan = scanOf([ids(1, 40), ids(1, 40), ids(4, 40)], paging);
    expect(scan.offsets).toEqual([0, 8, 16, 8, 16, 24, 32]);
    expect(scan.troubles).toEqual(['stepped-back']);
    expect(readIds(scan).size).toBe(40);
  });

  it('is not at its end where its old end was', () => {
    const scan = scanOf([ids(1, 40), ids(1, 40), ids(1, 40), ids(21, 40)], paging);
    expect(scan.offsets).toEqual([0, 8, 16, 24, 16, 8, 0, 8, 16]); // 24 is beyond the end
    expect(scan.pages[3]!.answer.data).toEqual([]);
    expect(scan.troubles).toEqual(['stepped-back', 'stepped-back', 'stepped-back']);
    expect(readIds(scan).size).toBe(40);
  });

  it('is begun again when bounded steps back have found nothing known', () => {
    const gone = Array.from({ length: 15 }, () => ids(1, 400));
    const scan = scanOf([...gone, ids(501, 900)], { ...paging });
    expect(scan.offsets.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, k) => 8 * k));
    expect(scan.offsets.slice(16, 26)).toEqual([112, 104, 96, 88, 80, 72, 64, 56, 0, 8]);
    expect(scan.troubles).toEqual([...Array<string>(8).fill('stepped-back'), 'adrift']);
    expect([...readIds(scan)].filter((id) => Number(id) > 500)).toHaveLength(400);
  });

  it('is read on when the records of the overlap have changed in their places', () => {
    const changed = ids(1, 30).map((record, k) =>
      k === 8 || k === 9 ? { id: k + 1, v: 2 } : record,
    );
    const scan = scanOf([ids(1, 30), changed], paging);
    expect(scan.offsets).toEqual([0, 8, 0, 8, 16, 24]);
    expect(readIds(scan).size).toBe(30);
  });
});

describe('a list and its total', () => {
  const paging = { pageSize: 10, overlap: 1 };
  const claim = (total: number) => ({
    request: ({ offset, pageSize }: { offset: number; pageSize: number }) => {
      const page = pageOf(ids(1, 30), offset, pageSize);
      return timer(1).pipe(map(() => answer(jsonsOf(page.data), { ...page, total })));
    },
  });

  it('is read again with a larger overlap when records are missing, and that is told', () => {
    const { pages, troubles } = scanOf([], { ...paging, ...claim(31) });
    expect(pages.map(({ offset }) => offset)).toEqual([
      0, 9, 18, 27, 29, 0, 5, 10, 15, 20, 0, 5, 10, 15, 20,
    ]);
    expect(troubles).toEqual(['short', 'short', 'unsettled']);
  });

  it('is told of where a reading was short, as soon as a page of it has nothing new', () => {
    const told: [ScanTrouble, number][] = [];
    const onTrouble = (trouble: ScanTrouble, offset: number) => told.push([trouble, offset]);
    scanOf([], { ...paging, ...claim(31), onTrouble });
    expect(told).toEqual([
      ['short', 0],
      ['short', 0],
      ['unsettled', 20],
    ]);
  });

  it('is not short when what was missing comes page by page', () => {
    const moved = [{ id: 28, v: 2 }, ...ids(1, 9), { id: 29, v: 2 }, ...ids(10, 27), { id: 30 }];
    const whole = ids(1, 30);
    const scan = scanOf([whole, whole, whole, moved], { pageSize: 10, overlap: 2 });
    expect(scan.offsets).toEqual([0, 8, 16, 24, 0, 5]); // 28 comes with the first page, 29 with the next
    expect(scan.troubles).toEqual([]);
    expect(readIds(scan).size).toBe(30);
  });

  it('is read in peace where nobody listens', () => {
    const states = [ids(1, 40), ids(1, 40), ids(4, 40)];
    let requests = 0;
    const seen: ScanPage[] = [];
    virtualTime().run(() => {
      pages({
        request: ({ offset, pageSize }) =>
          timer(1).pipe(map(() => pageOf(states[requests++] ?? states[2]!, offset, pageSize))),
        keyOf: keyOfId,
        pageSize: 10,
        overlap: 2,
      }).subscribe((page) => seen.push(page));
    });
    expect(seen.map(({ offset }) => offset)).toEqual([0, 8, 16, 8, 16, 24, 32]); // it stepped back
  });

  it('is not read again when more records came than it counts', () => {
    expect(scanOf([], { ...paging, ...claim(29) }).troubles).toEqual([]);
  });

  it('does not count a record twice whose key another one of its page has', () => {
    const twice = [...ids(1, 4), { id: 4, v: 2 }, ...ids(5, 29)]; // 30 records, 29 keys
    expect(scanOf([twice], { pageSize: 10, overlap: 1 }).troubles).toEqual([]);
  });

  it('counts such records once, although the overlap shows them again: a missing record is noticed', () => {
    const twice = [...ids(1, 4), { id: 4, v: 2 }, ...ids(5, 9)];
    const moved = [{ id: 8 }, ...twice.filter((record) => (record as { id: number }).id !== 8)];
    const scan = scanOf([twice, twice, moved], { pageSize: 5, overlap: 2 });
    expect(scan.offsets).toEqual([0, 3, 6, 0]);
    expect(readIds(scan)).toContain('8');
  });

  it('is not counted when it is too long to remember', () => {
    expect(scanOf([], { ...paging, ...claim(250_000) }).troubles).toContain('unsettled');
    expect(scanOf([], { ...paging, ...claim(250_001) }).troubles).toEqual([]);
  });

  it('is not counted when the scan is resumed', () => {
    const [first] = scanOf([], { ...paging, ...claim(31) }).pages;
    const resumed = scanOf([], { ...paging, ...claim(31), from: throughJson(first!.next!) });
    expect(resumed.troubles).toEqual([]);
  });

  it('costs one more page, and no alarm, when records moved to the front behind the reader', () => {
    const moved = [{ id: 25, v: 2 }, ...ids(1, 24), ...ids(26, 30)];
    const scan = scanOf([ids(1, 30), ids(1, 30), moved], { pageSize: 10, overlap: 2 });
    expect(scan.offsets).toEqual([0, 8, 16, 24, 0]);
    expect(scan.troubles).toEqual([]);
    expect(readIds(scan).size).toBe(30);
  });
});

describe('a list that always claims a next page', () => {
  const endless = (lists: () => JsonValue[]) => ({
    request: ({ offset, pageSize }: { offset: number; pageSize: number }) => {
      const page = pageOf(lists(), offset, pageSize);
      return timer(1).pipe(map(() => answer(jsonsOf(page.data), { ...page, hasNext: true })));
    },
  });

  it('ends where nothing comes, once that is seen again', () => {
    const scan = scanOf([], { pageSize: 10, overlap: 2, ...endless(() => ids(1, 20)) });
    const offsets = scan.pages.map(({ offset }) => offset);
    expect(offsets).toEqual([0, 8, 16, 18, 19, 20, 19]);
    expect(scan.pages.at(-1)?.next).toBeUndefined();
  });

  it('is read on when records have moved up meanwhile', () => {
    let requests = 0;
    const lists = () => (++requests < 6 ? ids(1, 40).slice(0, 20) : ids(6, 30));
    const scan = scanOf([], { pageSize: 10, overlap: 2, ...endless(lists) });
    expect(readIds(scan).size).toBe(30);
  });
});

describe('a list without a total order', () => {
  const swapped = [...ids(1, 7), { id: 9 }, { id: 8 }, ...ids(10, 20)];
  const paging = { pageSize: 10, overlap: 4 };

  it('is told of, and not read again when all its records came', () => {
    const scan = scanOf([ids(1, 20), swapped], paging);
    expect(scan.troubles).toEqual(['reordered']);
    expect(scan.offsets).toEqual([0, 6, 12]);
  });

  it('is told of once in a reading', () => {
    const swappedAgain = [...swapped.slice(0, 13), { id: 15 }, { id: 14 }, ...ids(16, 20)];
    const scan = scanOf([ids(1, 20), swapped, swappedAgain], paging);
    expect(scan.troubles).toEqual(['reordered']);
    expect(scan.offsets).toEqual([0, 6, 12]);
  });

  it('is read again when its total moved, so that nobody can tell whether all came', () => {
    const scan = scanOf([ids(1, 20), [...swapped, { id: 21 }]], paging);
    expect(scan.troubles).toEqual(['reordered']);
    expect(scan.offsets).toEqual([0, 6, 12, 0, 5, 10, 15]);
  });
});

describe('a server', () => {
  it('may give smaller pages than it was asked for', () => {
    const shrunk = ids(31, 200);
    const scan = scanOf([...Array<JsonValue[]>(8).fill(ids(1, 200)), shrunk], {
      pageSize: 1_000,
      overlap: 4,
      most: 20,
    });
    // Steps back are as long as the pages that came.
    expect(scan.offsets.slice(0, 12)).toEqual([0, 16, 32, 48, 64, 80, 96, 112, 128, 112, 96, 112]);
    expect(readIds(scan).size).toBe(200);
  });

  it('may promise a next page and have nothing to give', () => {
    const nothing = answer([], { total: 5, hasNext: true });
    const { pages, troubles } = scanOf([], { request: () => timer(1).pipe(map(() => nothing)) });
    expect(pages).toHaveLength(3);
    expect(troubles.at(-1)).toBe('unsettled');
  });

  it('may give records without a key', () => {
    const bare = Array.from({ length: 35 }, (_, k) => ({ name: `record ${k}` }));
    const scan = scanOf([bare], { pageSize: 10, overlap: 3 });
    expect(scan.offsets).toEqual([0, 7, 14, 21, 28]);
    expect(scan.troubles).toEqual([]);
  });

  it('may give records of all the same content without a key', () => {
    const nulls = Array<JsonValue>(35).fill(null);
    expect(scanOf([nulls], { pageSize: 10, overlap: 3 }).offsets).toEqual([0, 7, 14, 21, 28]);
  });

  it('is not believed to be in place because of a null that may be any null', () => {
    const withNull = (list: JsonValue[], at: number) => list.toSpliced(at, 0, null);
    const before = withNull(ids(1, 60), 19); // the last but one of the second page
    const after = withNull(ids(25, 60), 20); // 24 deleted, and a null early in the third page
    const scan = scanOf([before, before, after], { pageSize: 12, overlap: 3 });
    const read = readIds(scan);
    expect(ids(25, 60).filter((record) => !read.has(keyOfId(record)))).toEqual([]);
  });
});

it.each([[null], [undefined]])(
  'begins at the beginning where nothing was read yet: from is %s',
  (from) => {
    expect(scanOf([ids(1, 4)], { from }).offsets).toEqual([0]);
  },
);

it('keeps positions small enough for a cursor', () => {
  const orders = Array.from({ length: 12_000 }, (_, k) => ({ id: 100_000_000 + k, notes: 'x' }));
  const { pages } = scanOf([orders], { overlap: 250 });
  const sizes = pages.flatMap(({ next }) => (next ? [JSON.stringify(next).length] : []));
  expect(sizes).toHaveLength(15);
  expect(Math.max(...sizes)).toBeLessThan(5_000);
});

it('takes at least two records a page, for pages have to overlap', () => {
  const { offsets } = scanOf([ids(1, 4)], { pageSize: 1, overlap: 0, permit: () => of(0) });
  expect(offsets).toEqual([0, 1, 2]);
});
