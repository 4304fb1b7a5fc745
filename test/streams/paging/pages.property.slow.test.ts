import { lastValueFrom, take, toArray } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { BEGINNING } from '../../../src/streams/paging/anchors.ts';
import type { Position } from '../../../src/streams/paging/anchors.ts';
import type { ScanPage } from '../../../src/streams/paging/pages.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import {
  lost,
  MovingList,
  newest,
  pagesOf,
  plainScan,
  randomOf,
  scan,
  scanAhead,
  SORTS,
  throughJson,
} from './moving-list.ts';
import type { ListOptions, Sort } from './moving-list.ts';
import { scaled } from '../../support/scale.ts';

/** Lists in each order. */
const SEEDS = scaled(12, 500);
/** Of those, the ones that are read with interruptions. */
const INTERRUPTED_SEEDS = scaled(8, 200);
const AHEAD_SEEDS = scaled(6, 60);
const VOLATILE_SEEDS = scaled(8, 32);
const CALM_SEEDS = scaled(12, 200);
/** Repeated scans take longer. */
const SHUFFLED_SEEDS = scaled(10, 100);

vi.setConfig({ testTimeout: 60_000 });

interface Run {
  readonly seed: number;
  readonly list: ListOptions;
  readonly pageSize: number;
  readonly overlap: number;
}

/** Lists of 300-500 rows, pages of 20-50, overlaps of 10, 5, 3 and 1. */
function runsOf(
  sort: Sort,
  seeds: number,
  more: (run: { seed: number; pageSize: number }) => object,
): Run[] {
  return Array.from({ length: seeds }, (_, k) => {
    const seed = SORTS.indexOf(sort) * seeds + k + 1;
    const random = randomOf(seed);
    const [size, pageSize] = [300 + random(200), 20 + random(31)];
    const list = { seed, sort, size, ...more({ seed, pageSize }) };
    return { seed, list, pageSize, overlap: [10, 5, 3, 1][seed % 4]! };
  });
}

/** What is known otherwise than it is in the end, by a reading and the next window behind it. */
async function staleAfter(
  list: MovingList,
  read: ReadonlyMap<number, number>,
  options: { readonly pageSize: number; readonly overlap: number },
) {
  list.freeze();
  const window = await scan(list, { ...options, since: list.began });
  const known = new Map([...read, ...window.read]);
  return [...list.truth()].filter(([id, version]) => known.get(id) !== version);
}

describe.each(SORTS)('a list in the order %s that moves while it is paged', (sort) => {
  const moving = runsOf(sort, SEEDS, ({ pageSize }) => ({
    churn: 3,
    bursts: 4,
    burstSize: 3 * pageSize,
  }));

  it('loses nothing that stood still; what changed is in the next window', async () => {
    let lostByPlain = 0;
    for (const { seed, list: options, pageSize, overlap } of moving) {
      const list = new MovingList(options);
      const first = await scan(list, { pageSize, overlap });
      expect(lost(list, first.read), `seed ${seed}`).toEqual([]);
      expect(first.troubles, `seed ${seed}`).not.toContain('reordered');
      expect(first.troubles, `seed ${seed}`).not.toContain('unsettled');

      expect(await staleAfter(list, first.read, { pageSize, overlap }), `seed ${seed}`).toEqual([]);

      const again = new MovingList(options);
      if (lost(again, plainScan(again, pageSize)).length > 0) lostByPlain += 1;
    }
    expect(lostByPlain).toBeGreaterThan(SEEDS / 2);
  });

  it('loses nothing where a field differs in every answer, and is read to its end', async () => {
    for (const { seed, list: options, pageSize, overlap } of moving.slice(0, VOLATILE_SEEDS)) {
      const list = new MovingList({ ...options, volatile: 'one' });
      const first = await scan(list, { pageSize, overlap });
      expect(lost(list, first.read), `seed ${seed}`).toEqual([]);
      expect(first.troubles, `seed ${seed}`).not.toContain('unsettled');

      expect(await staleAfter(list, first.read, { pageSize, overlap }), `seed ${seed}`).toEqual([]);
    }
  });

  it('loses nothing where such a field is all that a record has beside its key', async () => {
    const enough = moving.filter(({ overlap }) => overlap === 10);
    for (const { seed, list: options, pageSize, overlap } of enough.slice(0, VOLATILE_SEEDS)) {
      const list = new MovingList({ ...options, volatile: 'bare' });
      const { read } = await scan(list, { pageSize, overlap });
      expect(lost(list, read), `seed ${seed}`).toEqual([]);
    }
  });

  it('comes to its end where the overlap is too small for such records to be known again', async () => {
    const small = moving.filter(({ overlap }) => overlap < 5).slice(0, VOLATILE_SEEDS);
    for (const { seed, list: options, pageSize, overlap } of small) {
      const list = new MovingList({ ...options, churn: 0, bursts: 0, volatile: 'bare' });
      const { read } = await scan(list, { pageSize, overlap });
      expect(lost(list, read), `seed ${seed}`).toEqual([]);
      expect(list.requests, `seed ${seed}`).toBeLessThan(1_000);
    }
  });

  it('loses nothing when the scan stops anywhere and goes on from its position', async () => {
    for (const { seed, list: options, pageSize, overlap } of moving.slice(0, INTERRUPTED_SEEDS)) {
      const list = new MovingList(options);
      const random = randomOf(seed);
      const answers: Answer[] = [];
      let from: Position | undefined = BEGINNING;
      while (from) {
        const part = pagesOf(list, { pageSize, overlap, from }).pipe(take(1 + random(12)));
        const read: ScanPage[] = await lastValueFrom(part.pipe(toArray()));
        answers.push(...read.map((page) => page.answer));
        const next = read.at(-1)!.next;
        from = next && throughJson(next);
      }
      expect(lost(list, newest(answers)), `seed ${seed}`).toEqual([]);
    }
  });

  it('loses nothing when pages are asked for ahead, and answered in any order', async () => {
    let together = 0;
    for (const { seed, list: options, pageSize, overlap } of moving.slice(0, AHEAD_SEEDS)) {
      const list = new MovingList(options);
      const first = scanAhead(list, seed, { pageSize, overlap });
      expect(lost(list, first.read), `seed ${seed}`).toEqual([]);
      expect(first.troubles, `seed ${seed}`).not.toContain('reordered');
      expect(first.troubles, `seed ${seed}`).not.toContain('unsettled');
      together += first.most;

      expect(await staleAfter(list, first.read, { pageSize, overlap }), `seed ${seed}`).toEqual([]);
    }
    expect(together / AHEAD_SEEDS).toBeGreaterThan(4); // requests at once
  });

  it('raises no false alarm while records are changed, added and removed one by one', async () => {
    const calm = [{ churn: 3 }, { churn: 1, changesOnly: true }, {}];
    const runs = runsOf(sort, CALM_SEEDS, ({ seed }) => calm[seed % 3]!);
    for (const { seed, list: options, pageSize } of runs) {
      const { troubles } = await scan(new MovingList(options), { pageSize });
      expect(troubles, `seed ${seed}`).toEqual([]);
    }
  });
});

describe.each(['updated-asc', 'updated-desc'] as const)(
  'a list in the order %s that orders ties anew for each request',
  (sort) => {
    const runs = runsOf(sort, SHUFFLED_SEEDS, ({ seed }) => ({
      shuffled: true,
      ties: [2, 5, 12, 60, 400][seed % 5]!,
      churn: seed % 3 === 0 ? 2 : 0,
    }));

    it('is told of, and where records may have been missed that is told too', async () => {
      let lostByPlain = 0;
      let untold = 0;
      for (const { seed, list: options, pageSize } of runs) {
        const list = new MovingList(options);
        const { read, troubles } = await scan(list, { pageSize });
        if (lost(list, read).length > 0) expect(troubles, `seed ${seed}`).toContain('unsettled');

        const again = new MovingList(options);
        if (lost(again, plainScan(again, pageSize)).length === 0) continue;
        lostByPlain += 1;
        if (!troubles.includes('reordered') && !troubles.includes('short')) untold += 1;
      }
      expect(lostByPlain).toBeGreaterThan(SHUFFLED_SEEDS / 2);
      expect(untold).toBeLessThan(lostByPlain / 100);
    });
  },
);
