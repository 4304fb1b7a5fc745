import { defer, delay, map, of, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { PagePlan } from '../../../src/streams/http/page-plan.ts';
import type { PagePlace } from '../../../src/streams/http/page-plan.ts';
import type { Position } from '../../../src/streams/paging/anchors.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { PagesOptions } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import { ignoredFields } from '../../../src/streams/paging/standstill.ts';
import { jsonsOf } from '../../support/records.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer, keyOfId, throughJson } from './moving-list.ts';

/** What a server does with `offset` and `pageSize`. */
interface Server {
  readonly offsets?: 'exact' | 'down' | 'nearest';
  readonly sizes?: readonly [least: number, most: number];
  readonly echo?: 'used' | 'asked' | 'missing' | 'zero';
  readonly wraps?: boolean;
  readonly claimsNext?: boolean;
  /** Offsets are rounded to multiples of this instead of the page size. */
  readonly step?: number;
  /** `has_next_page` is worked out from the size that was asked for. */
  readonly trustsAsked?: boolean;
}

const ids = (first: number, last: number): JsonValue[] =>
  Array.from({ length: last - first + 1 }, (_, k) => ({ id: first + k }));

function serve(list: readonly JsonValue[], asked: PagePlace, server: Server): Answer {
  const { offsets = 'exact', sizes = [1, 1_000], echo = 'used', wraps, claimsNext } = server;
  const { trustsAsked = false } = server;
  const size = Math.min(Math.max(asked.pageSize, sizes[0]), sizes[1]);
  const round = { exact: (x: number) => x, down: Math.floor, nearest: Math.round }[offsets];
  const step = server.step ?? size;
  let begin = offsets === 'exact' ? asked.offset : round(asked.offset / step) * step;
  const isWrapped = wraps === true && begin >= list.length;
  if (isWrapped) begin = 0;
  const reported = {
    used: { offset: begin, pageSize: size },
    asked,
    missing: {},
    zero: { offset: 0 },
  }[echo];
  return {
    ...answer(list.slice(begin, begin + size), {
      total: list.length,
      hasNext:
        claimsNext === true ||
        isWrapped ||
        begin + (trustsAsked ? asked.pageSize : size) < list.length,
    }),
    reported,
  };
}

interface Outcome {
  readonly read: Set<unknown>;
  readonly requests: PagePlace[];
  readonly troubles: ScanTrouble[];
  readonly positions: Position[];
}

/** Reads the list, which is `states[n]` at the nth request. */
function read(
  states: readonly (readonly JsonValue[])[],
  server: Server,
  options: Partial<PagesOptions> = {},
): Outcome {
  const requests: PagePlace[] = [];
  const troubles: ScanTrouble[] = [];
  const positions: Position[] = [];
  const seen = new Set<unknown>();
  let failure: unknown;
  let isDone = false;
  virtualTime().run(() => {
    pages({
      request: (asked): Observable<Answer> =>
        defer(() => {
          if (requests.length > 400) return throwError(() => new Error('the scan does not end'));
          return of(states[Math.min(requests.length, states.length - 1)]!).pipe(
            tap(() => requests.push(asked)),
            delay(1),
            map((list) => serve(list, asked, server)),
          );
        }),
      keyOf: keyOfId,
      pageSize: 100,
      onTrouble: (trouble) => troubles.push(trouble),
      ...options,
    }).subscribe({
      next: ({ answer: { data }, next }) => {
        jsonsOf(data)
          .map(keyOfId)
          .forEach((id) => seen.add(id));
        if (next) positions.push(next);
      },
      error: (error: unknown) => (failure = error),
      complete: () => (isDone = true),
    });
  });
  if (failure) throw failure as Error;
  expect(isDone).toBe(true);
  return { read: seen, requests, troubles, positions };
}

const ECHOES = ['used', 'asked', 'missing', 'zero'] as const;

describe.each(ECHOES)('a server that moves offset, and says of it: %s', (echo) => {
  it.each([
    ['rounds down', { offsets: 'down' }],
    ['rounds to the nearest page', { offsets: 'nearest' }],
    ['rounds down and caps the page', { offsets: 'down', sizes: [1, 40] }],
    ['rounds down and has a least page', { offsets: 'down', sizes: [30, 1_000] }],
    ['rounds down and wraps behind the end', { offsets: 'down', wraps: true, claimsNext: true }],
    ['rounds down and ignores pageSize', { offsets: 'down', sizes: [50, 50] }],
    ['caps the page', { sizes: [1, 40] }],
    ['ignores pageSize', { sizes: [50, 50] }],
    ['rounds down to 50, whatever the page size', { offsets: 'down', step: 50 }],
    ['rounds down to 64, whatever the page size', { offsets: 'down', step: 64 }],
    ['rounds to the nearest 20, whatever the page size', { offsets: 'nearest', step: 20 }],
    ['caps the page, and ends too early by its word', { sizes: [1, 25], trustsAsked: true }],
  ] as const)('has its 1,000 records read, and the reading ends: %s', (_, server) => {
    const outcome = read([ids(1, 1_000)], { ...server, echo });
    expect(outcome.read.size).toBe(1_000);
    expect(outcome.requests.length).toBeLessThan(100);
    expect(outcome.troubles).not.toContain('unsettled');
  });

  it('is read without a search by the next scan, and from a stored position by another process', () => {
    const plan = new PagePlan();
    const server = { offsets: 'down', echo } as const;
    read([ids(1, 1_000)], server, { plan });
    const again = read([ids(1, 1_000)], server, { plan });
    expect(again.troubles).toEqual([]);
    expect(again.requests.length).toBeLessThan(16);

    const half = again.positions[5]!;
    const resumed = read([ids(1, 1_000)], server, { from: throughJson(half) });
    expect(resumed.requests[0]!.offset).toBeGreaterThan(300);
    expect(resumed.read.has('1000')).toBe(true);
    expect(again.read.size).toBe(1_000);
  });

  it.each([2, 95, 100, 101, 150, 190, 200])('has %i records read', (count) => {
    for (const offsets of ['down', 'nearest'] as const) {
      expect(read([ids(1, count)], { offsets, echo }).read.size).toBe(count);
      const wrapping = { offsets, echo, wraps: true, claimsNext: true } as const;
      expect(read([ids(1, count)], wrapping).read.size).toBe(count);
    }
  });

  it('loses nothing that stands still while records are removed in front', () => {
    const states = Array.from({ length: 12 }, (_, n) => ids(1 + 7 * n, 1_000));
    const outcome = read(states, { offsets: 'down', echo });
    expect(ids(78, 1_000).filter((record) => !outcome.read.has(keyOfId(record)))).toEqual([]);
  });
});

it.each([21, 10, 5, 3, 2])(
  'whole pages of a limit of %i overlap as far as they can, and end',
  (pageSize) => {
    const outcome = read([ids(1, 130)], { offsets: 'down' }, { pageSize });
    expect(outcome.read.size).toBe(130);
  },
);

it('from a limit of 21 on a whole page reaches on from any place', () => {
  for (const limit of [21, 22, 37, 100, 1_000]) {
    const plan = new PagePlan();
    plan.foundWhole();
    for (let end = 11; end < 1_000; end += limit > 100 ? 17 : 1) {
      const { offset, pageSize, isBlind } = plan.next(end, Math.min(10, end >> 1), limit);
      expect([offset % pageSize, isBlind]).toEqual([0, false]);
      expect(offset).toBeLessThan(end);
      expect(offset + pageSize).toBeGreaterThan(end);
      expect(pageSize).toBeLessThanOrEqual(limit);
    }
  }
});

it('whole pages go on when pages of the smallest size that the server sends have failed', () => {
  const plan = new PagePlan();
  plan.foundWhole();
  const seen = { length: 20, hasNext: true, reported: undefined };
  plan.saw({ ...seen, place: { offset: 0, pageSize: 13 } });
  plan.tooLarge(13, 20);
  expect(plan.wholeAt(100, 100)).toEqual({ offset: 91, pageSize: 13 });
});

describe('a list whose end the server denies', () => {
  it.each([10, 100, 990, 1_000])('ends where nothing new comes: %i records', (count) => {
    for (const server of [{ claimsNext: true }, { claimsNext: true, wraps: true }]) {
      const outcome = read([ids(1, count)], server);
      expect(outcome.read.size).toBe(count);
      expect(outcome.requests.length).toBeLessThan(25);
    }
  });

  it.each([1, 11, 101, 150])('has no page size that its last page shows: %i records', (count) => {
    const plan = new PagePlan();
    const server = { claimsNext: true, wraps: true, echo: 'used' } as const;
    for (const list of [ids(1, count), ids(1, count)]) read([list], server, { plan });
    expect(plan.limit(100)).toBe(100);
  });

  it('ends, too, when it has shrunk so much that the reader is behind its end', () => {
    const states = [...Array<JsonValue[]>(8).fill(ids(1, 1_000)), ids(1, 30)];
    expect(read(states, { wraps: true, claimsNext: true }).requests.length).toBeLessThan(60);
  });
});

it('a server that does what it is asked gets no request more, and no whole pages', () => {
  const plan = new PagePlan();
  const { requests, troubles } = read([ids(1, 1_000)], {}, { plan });
  expect(requests.map(({ offset }) => offset)).toEqual(
    Array.from({ length: 11 }, (_, k) => 90 * k),
  );
  expect(troubles).toEqual([]);
  expect(plan.isWhole).toBe(false);
});

it('a list of small whole pages, whose records are compared by their keys alone, is read in a few rounds', () => {
  const list = Array.from({ length: 22 }, (_, id) => ({ id, version: id }));
  const plan = new PagePlan();
  plan.foundWhole();
  const { requests, ...outcome } = read(
    [list],
    { offsets: 'down', sizes: [1, 6] },
    { plan, pageSize: 6, leftOut: ignoredFields(['/version']) },
  );
  expect(outcome.read.size).toBe(22);
  expect(outcome.troubles).not.toContain('unsettled');
  expect(requests.length).toBeLessThan(15);
});
