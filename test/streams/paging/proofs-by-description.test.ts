// Proofs by full scans that records are missing, by the properties in a list's description.

import { concatMap, delay, map, of, takeWhile, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { ListDescription } from '../../../src/description/description.ts';
import { canProveAbsence, possibleLevels, readingRules } from '../../../src/description/levels.ts';
import { parseDescription } from '../../../src/description/read-description.ts';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';
import type { PagePlace } from '../../../src/streams/http/page-plan.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import { levelOf } from '../../../src/streams/paging/sweep-progress.ts';
import { sweeps } from '../../../src/streams/paging/sweeps.ts';
import { Chance } from '../../support/chance.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer, keyOfId } from './moving-list.ts';
import { SweepLedger } from './sweep-ledger.ts';

function listOf(keys: object): ListDescription {
  const list = { path: '/things', records: '/things', key: 'id', ...keys };
  const file = { format: 1, api: 'shop', auth: 'none', quota: '5/s', lists: { things: list } };
  return parseDescription(JSON.stringify(file), 'shop.json').lists[0]!;
}

const CURSOR = { paging: 'cursor', next: '/next', query: { cursor: '{cursor}' } };
const OFFSET = { paging: 'offset', query: { skip: '{offset}', take: '{limit}' }, limit: 30 };
const BY_CURSOR = listOf(CURSOR);
const COUNTED = listOf({ ...CURSOR, total: '/total' });
const AGREED = listOf({ ...CURSOR, agreed: true });
const WHOLE = listOf({ paging: 'none' });
const WITHOUT_TOTAL = listOf({ ...OFFSET, more: '/more' });
const AFTER = listOf({ paging: 'after', more: '/more', limit: 30, query: { after: '{after}' } });
const NUMBERED = listOf({ paging: 'page', more: '/more', query: { page: '{page}' } });

const PROOF_MS = 60_000;
const PAGE = 4;
const EVERY_MS = 10_000;
const SEEDS = Number(process.env.SEEDS ?? 3);

/** The ids in the list, by the time in ms and the number of requests of the running sweep before this one. */
type Rows = (at: number, request: number) => readonly number[];

interface Swept {
  readonly gone: string[];
  readonly goneAt: number[];
  readonly levels: (string | undefined)[];
  readonly troubles: ScanTrouble[];
  readonly ledger: SweepLedger;
}

/** A server whose cursor is the place in the list, which the list's description does not tell. */
function answerOf(
  list: ListDescription,
  all: readonly number[],
  { offset, cursor }: PagePlace,
): Answer {
  const { paging, first } = list;
  const size = paging === 'none' ? Infinity : PAGE;
  const isByKey = paging === 'after' && cursor !== undefined;
  const place =
    paging === 'offset' ? offset : Number(cursor ?? first) * (paging === 'page' ? size : 1);
  const from = isByKey ? all.filter((id) => id <= Number(cursor)).length : place;
  const data: JsonValue[] = all.slice(from, from + size).map((id) => ({ id }));
  const hasNext = from + size < all.length;
  return {
    ...answer(data, { total: list.total === undefined ? undefined : all.length, hasNext }),
    ...(paging === 'cursor' && hasNext && { next: String(from + size) }),
  };
}

/** Sweeps the list in virtual time, every ten seconds for three minutes; a request takes 5 ms. */
function swept(
  list: ListDescription,
  rows: Rows,
  {
    isPolled = false,
    rejectedAt = [] as readonly number[],
    known = [] as readonly string[],
    intervalMs = EVERY_MS,
    forMs = 180_000,
    isEndless = false,
    /** The last record, too, has a cursor: behind it is an empty page. */
    isTrailing = false,
    /** From this time on, in ms, the second page has its own cursor as that of the next page. */
    stuckAt = Infinity,
  } = {},
): Swept {
  const scheduler = virtualTime();
  const ledger = new SweepLedger(known);
  const rules = readingRules(list);
  const pageSize = list.paging === 'none' ? 1_000 : PAGE;
  Object.assign(ledger, { rules, isPolled, rejectedAt, pageSize });
  const found: Swept = { gone: [], goneAt: [], levels: [], troubles: [], ledger };
  let requests = 0;
  scheduler.run(() => {
    const place = pageSlots(1);
    sweeps({
      progress: () => ledger.progress,
      scan: (from, onTrouble) => {
        requests = 0;
        return pages({
          request: (page) =>
            timer(5, scheduler).pipe(
              map(() => {
                const all = rows(scheduler.now(), requests++);
                if (isTrailing) {
                  const answered = answerOf(list, all, page);
                  const end = Number(page.cursor ?? 0) + answered.data.length;
                  const hasNext = answered.data.length > 0;
                  return { ...answered, hasNext, ...(hasNext && { next: String(end) }) };
                }
                if (scheduler.now() > stuckAt && page.cursor !== undefined)
                  return { ...answerOf(list, all, page), hasNext: true, next: page.cursor };
                if (!isEndless) return answerOf(list, all, page);
                // The last page is served again and again.
                const cursor = String(Math.min(Number(page.cursor ?? 0), all.at(-PAGE - 1)!));
                return { ...answerOf(list, all, { ...page, cursor }), hasNext: true };
              }),
            ),
          ...{ keyOf: keyOfId, list, pageSize: PAGE, from },
          permit: () => place.acquire,
          onTrouble: (trouble) => {
            found.troubles.push(trouble);
            onTrouble(trouble);
          },
        });
      },
      pageSlots: place,
      records: ledger,
      emptySpan: () => ({ begin: 98, end: 99 }),
      ...(isPolled && { pollsCompleted$: timer(1_000, scheduler) }),
      pace: { intervalMs },
      deletions: { proofMs: PROOF_MS, limitPercent: 100, canProve: canProveAbsence(list) },
      scheduler,
    })
      .pipe(
        concatMap((step) => of(step).pipe(delay(1, scheduler))),
        tap((step) => {
          const keys = ledger.keep(step, scheduler.now(), PROOF_MS);
          found.gone.push(...keys);
          found.goneAt.push(...keys.map(() => scheduler.now()));
          if (step.kind === 'end') found.levels.push(levelOf(ledger.progress, rules, PROOF_MS));
          place.release();
        }),
        takeWhile(() => scheduler.now() < forMs),
      )
      .subscribe();
  });
  return found;
}

const ids = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, nth) => from + nth);
const without = (all: readonly number[], ...gone: number[]) =>
  all.filter((id) => !gone.includes(id));
/** 17 records, of which number 7 is deleted after 30 seconds. */
const ONE_DELETED: Rows = (at) => without(ids(1, 17), ...(at > 30_000 ? [7] : []));

describe('a record that is deleted', () => {
  it.each<[string, ListDescription]>([
    ['a cursor alone', BY_CURSOR],
    ['page numbers of a size that the server chooses', NUMBERED],
  ])('is never published as deleted where the list has %s', (_, list) => {
    const { gone, levels } = swept(list, ONE_DELETED);
    expect(possibleLevels(list)).toEqual(['read']);
    expect(gone).toEqual([]);
    expect(new Set(levels)).toEqual(new Set(['read']));
  });

  it.each<[string, ListDescription, string]>([
    ['a total', COUNTED, 'counted'],
    ['offsets, and its records are sorted by their key', WITHOUT_TOTAL, 'anchored'],
    ['no paging', WHOLE, 'whole'],
    ['a cursor, and agreement is accepted', AGREED, 'agreed'],
  ])(
    'is deleted once, not before the time of the proof, where the list has %s',
    (_, list, level) => {
      const { gone, goneAt, levels } = swept(list, ONE_DELETED);
      expect(gone).toEqual(['7']);
      expect(goneAt[0]).toBeGreaterThan(30_000 + PROOF_MS);
      expect(levels.at(-1)).toBe(level);
      expect(possibleLevels(list)).toContain(level);
    },
  );
});

it('a list whose last record has a cursor is read to its end, which is an empty page', () => {
  const counted = swept(COUNTED, ONE_DELETED, { isTrailing: true });
  expect(counted.gone).toEqual(['7']);
  expect(counted.levels.at(-1)).toBe('counted');
  const { gone, levels } = swept(BY_CURSOR, ONE_DELETED, { isTrailing: true });
  expect(gone).toEqual([]);
  expect(new Set(levels)).toEqual(new Set(['read']));
  expect(swept(AGREED, ONE_DELETED, { isTrailing: true }).gone).toEqual([]);
});

it('a missing record has a list read more often only where that may prove something', () => {
  const hour = 3_600_000;
  const hourly = (list: ListDescription) =>
    swept(list, ONE_DELETED, { intervalMs: hour, forMs: 5.5 * hour, known: ['50'] }).levels.length;
  expect(hourly(BY_CURSOR)).toBe(5);
  expect(hourly(AGREED)).toBeGreaterThan(5);
});

describe('agreement', () => {
  it('is not reached while any other record comes or goes between two readings', () => {
    const rows: Rows = (at) => [...without(ids(1, 16), ...(at > 30_000 ? [7] : [])), 100 + at];
    const { gone, levels } = swept(AGREED, rows);
    expect(gone.filter((key) => Number(key) < 100)).toEqual([]);
    expect(levels).not.toContain('agreed');
  });

  it('is not reached by readings that each miss the same record, because another goes as they are read', () => {
    // In each reading a record of the first page is deleted before the second one is requested: number 50 moves to the first page.
    const rows: Rows = (at, request) => {
      const oldest = Math.floor(at / EVERY_MS);
      return [...ids(oldest + (request > 0 ? 1 : 0), oldest + 3), 50, ...ids(60, 70)];
    };
    const { gone, ledger } = swept(AGREED, rows, { known: ['50'] });
    expect(gone).not.toContain('50');
    expect(ledger.keys()).toContain('50');
  });

  it('is not reached from one reading', () => {
    const { goneAt } = swept(AGREED, () => ids(1, 5), { known: ['9'] });
    expect(goneAt[0]).toBeGreaterThan(PROOF_MS);
  });

  it('waits for the polls, which read the records that moved meanwhile', () => {
    const { gone, goneAt } = swept(AGREED, ONE_DELETED, { isPolled: true });
    expect(gone).toEqual(['7']);
    const alone = swept(AGREED, ONE_DELETED).goneAt[0]!;
    expect(goneAt[0]).toBeGreaterThanOrEqual(alone + 1_000);
  });
});

describe('a record without a usable key', () => {
  it.each<[string, ListDescription]>([
    ['whole', WHOLE],
    ['agreed', AGREED],
    ['anchored', WITHOUT_TOTAL],
  ])('may be any missing record: no deletion, %s', (_, list) => {
    expect(swept(list, ONE_DELETED, { rejectedAt: [1] }).gone).toEqual([]);
  });
});

describe('a list without paging', () => {
  it('may be capped by the server at any round number', () => {
    // The server shows 20 records, the newest first, and gets a new one every ten seconds.
    const rows: Rows = (at) =>
      ids(1, 40 + Math.floor(at / EVERY_MS))
        .reverse()
        .slice(0, 20);
    expect(swept(WHOLE, rows).gone).toEqual([]);
  });
});

describe('a server that claims more pages for ever', () => {
  it('does not show that a list without a total has ended', () => {
    const { troubles, levels, gone } = swept(AFTER, ONE_DELETED, { isEndless: true });
    expect(new Set(troubles)).toContain('endless');
    expect(new Set(levels)).toEqual(new Set([undefined]));
    expect(gone).toEqual([]);
  });
});

describe('a server that repeats the cursor that was asked for', () => {
  it.each([
    ['without a total', AGREED],
    ['whose total says more', listOf({ ...CURSOR, total: '/total', agreed: true })],
  ])('does not show that a list %s has ended', (_, list) => {
    const { troubles, gone } = swept(list, () => ids(1, 17), { stuckAt: 30_000 });
    expect(gone).toEqual([]);
    expect(new Set(troubles)).toEqual(new Set(['endless', 'unsettled']));
  });
});

describe('a cursor that is an offset', () => {
  it('is noticed once a reading when a record is inserted before the page, and such a reading proves nothing', () => {
    const rows: Rows = (at, request) =>
      at > 30_000 ? [...(request > 1 ? [0] : []), ...without(ids(1, 17), 7)] : ids(1, 17);
    const { troubles, gone, levels } = swept(AGREED, rows);
    expect(troubles.length).toBeGreaterThan(5);
    expect(new Set(troubles)).toEqual(new Set(['shifted']));
    expect(troubles.length).toBe(levels.filter((level) => level === undefined).length);
    expect(gone).toEqual([]);
  });

  it('is not suspected when a record that was read has changed', () => {
    const { troubles } = swept(BY_CURSOR, ONE_DELETED);
    expect(troubles).toEqual([]);
  });
});

/** A list that moves before most of its requests for a while, and then rests; with the ids that it still has, and all that it ever had. */
class Churn {
  readonly #chance: Chance;
  #rows = Array.from({ length: 24 }, (_, nth) => 1_000 + nth * 100);
  readonly all = new Set(this.#rows);

  constructor(seed: number) {
    this.#chance = new Chance(seed, 'churn');
  }

  get rows(): readonly number[] {
    return this.#rows;
  }

  readonly next: Rows = (at) => {
    const isBusy = at % 150_000 < 80_000;
    const isMoving = isBusy && this.#chance.below(2) === 0;
    for (let n = isMoving ? 1 + this.#chance.below(3) : 0; n > 0; n -= 1) {
      const place = this.#chance.below(this.#rows.length);
      if (this.#chance.below(2) === 0 && this.#rows.length > 12) {
        this.#rows = this.#rows.filter((_, nth) => nth !== place);
        continue;
      }
      const id = this.#rows[place]! + 1 + this.#chance.below(99);
      if (this.all.has(id)) continue;
      this.all.add(id);
      this.#rows = [...this.#rows, id].sort((one, other) => one - other);
    }
    return this.#rows;
  };
}

describe('a list that moves while it is read', () => {
  it.each<[string, ListDescription]>([
    ['a cursor that is an offset, agreed', AGREED],
    ['a cursor that is an offset, with a total', COUNTED],
    ['a cursor that is an offset', BY_CURSOR],
    ['offsets without a total', WITHOUT_TOTAL],
    ['keys', AFTER],
    ['no paging', WHOLE],
  ])('has no false deletion: %s', (_, list) => {
    let deleted = 0;
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const churn = new Churn(seed);
      const found = swept(list, churn.next, { forMs: 310_000 });
      deleted += found.gone.length;
      const here = new Set(churn.rows.map(String));
      expect(
        found.gone.filter((key) => here.has(key)),
        `seed ${seed}`,
      ).toEqual([]);
    }
    expect(deleted > 0).toBe(list !== BY_CURSOR);
  });
});
