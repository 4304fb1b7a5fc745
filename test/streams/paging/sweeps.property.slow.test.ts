import {
  asapScheduler,
  concatMap,
  delay,
  lastValueFrom,
  map,
  of,
  scheduled,
  takeWhile,
  tap,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';
import {
  deletedUnlessSeenSince,
  showsAbsence,
} from '../../../src/streams/paging/sweep-progress.ts';
import { sweeps } from '../../../src/streams/paging/sweeps.ts';
import type { SweepStep } from '../../../src/streams/paging/sweeps.ts';
import { answer, MovingList, pagesOf, randomOf, SORTS } from './moving-list.ts';
import type { ListOptions } from './moving-list.ts';
import { SweepLedger } from './sweep-ledger.ts';
import { scaled } from '../../support/scale.ts';

/** Lists in each order, each swept with and without a query for single records. */
const SEEDS = scaled(4, 25);
/** Sweeps that begin while a list moves, and then, while it stands still. */
const MOVING_SWEEPS = 5;
const STILL_SWEEPS = 3;
/** A process lives for so many steps at most, and polls at least every so many. */
const MAX_STEPS = 60;
const MAX_STEPS_BETWEEN_POLLS = 16;

vi.setConfig({ testTimeout: 60_000 });

interface Outcome {
  /** Deletions that were told. */
  readonly told: number;
  /** Sweeps after which they could be. */
  readonly proofs: number;
  /** Keys that a complete sweep had missed, and that were found when they were asked for. */
  readonly found: number;
}

/** Sweeps a list that moves, by processes that stop anywhere, and holds what they tell against it. */
async function swept(list: ListOptions, pageSize: number, canAsk: boolean): Promise<Outcome> {
  const label = `seed ${list.seed}`;
  const moving = new MovingList(list);
  const random = randomOf(list.seed);
  const truth = () => new Map([...moving.truth()].map(([id, version]) => [String(id), version]));
  let polled = truth(); // as of the newest poll
  let unpolled = 0; // steps since
  const ledger = new SweepLedger(polled.keys(), 37);
  const sweepThere = new Map<string, number>(); // by key: the newest sweep that it was there during
  const outcome = { told: 0, proofs: 0, found: 0 };

  /** What windows do: they find what was added and changed, if it is still there. */
  const poll = (there: ReadonlyMap<string, number>) => {
    ledger.see([...there].flatMap(([key, version]) => (polled.get(key) === version ? [] : key)));
    polled = new Map(there);
    unpolled = 0;
  };
  const ask = (key: string): Observable<Answer> =>
    scheduled([0], asapScheduler).pipe(
      map(() => {
        moving.page(0, 1); // as any request, it finds the list moved
        const data = moving.truth().has(Number(key)) ? [{ id: Number(key) }] : [];
        outcome.found += data.length;
        return answer(data, { total: data.length, hasNext: false });
      }),
    );
  const keep = (step: SweepStep) => {
    const { progress } = ledger;
    const asked = showsAbsence(progress, true) ? progress.number : undefined;
    const since = canAsk ? asked : deletedUnlessSeenSince(progress, 0);
    const gone = ledger.keep(step, 0);
    const there = truth();
    expect(
      gone.filter((key) => there.has(key)),
      label,
    ).toEqual([]);
    outcome.told += gone.length;

    const { number } = ledger.progress;
    for (const key of there.keys()) sweepThere.set(key, number);
    if (step.kind === 'end' && since !== undefined) {
      outcome.proofs += 1;
      const untold = ledger.keys().filter((key) => (sweepThere.get(key) ?? 0) < since);
      expect(untold, `${label}, sweep ${number}`).toEqual([]);
    }
    if (++unpolled === MAX_STEPS_BETWEEN_POLLS || random(8) === 0) poll(there);
  };
  const isDone = (sweep: number) =>
    ledger.progress.number >= sweep && ledger.progress.phase === 'done';
  const live = async (steps: number, sweep: number) => {
    const place = pageSlots(1);
    let left = steps;
    const sweep$ = sweeps({
      progress: () => ledger.progress,
      scan: (from, onTrouble) =>
        pagesOf(moving, {
          pageSize,
          overlap: [10, 5, 3, 1][list.seed % 4]!,
          permit: () => place.acquire,
          from,
          onTrouble,
        }),
      pageSlots: place,
      records: ledger,
      ...(canAsk && { single: { request: ask, canRequest: () => true } }),
      emptySpan: () => ({ begin: 1, end: 2 }),
      pace: { intervalMs: 0 },
      deletions: { proofMs: 0, limitPercent: 100 },
      scheduler: asapScheduler,
    }).pipe(
      concatMap((step) => of(step).pipe(delay(0, asapScheduler))),
      takeWhile(() => left-- > 0 && !isDone(sweep)), // the last one was taken, and is not kept
      tap((step) => {
        keep(step);
        place.release();
      }),
    );
    await lastValueFrom(sweep$, { defaultValue: undefined });
  };
  const liveUntil = async (sweep: number) => {
    while (!isDone(sweep)) await live(1 + random(MAX_STEPS), sweep);
  };

  await liveUntil(MOVING_SWEEPS);
  moving.freeze();
  await liveUntil(ledger.progress.number + STILL_SWEEPS);
  expect(ledger.keys().sort(), label).toEqual([...truth().keys()].sort());
  return outcome;
}

describe.each(SORTS)('a list in the order %s that moves while it is swept', (sort) => {
  const lists = Array.from({ length: SEEDS }, (_, k) => {
    const seed = SORTS.indexOf(sort) * SEEDS + k + 1;
    const random = randomOf(seed);
    const [size, pageSize] = [300 + random(200), 15 + random(11)];
    const list: ListOptions = {
      seed,
      sort,
      size,
      churn: 1 + (seed % 3),
      bursts: 5,
      burstSize: 2 * pageSize,
    };
    return { list, pageSize };
  });

  it.each([
    ['can be asked for', true],
    ['can not', false],
  ])('has its deletions told, all and nothing else, where records %s', async (_, canAsk) => {
    const outcomes: Outcome[] = [];
    for (const { list, pageSize } of lists) outcomes.push(await swept(list, pageSize, canAsk));
    const sum = (of: keyof Outcome) => outcomes.reduce((all, outcome) => all + outcome[of], 0);
    expect(sum('told')).toBeGreaterThan(SEEDS * 20);
    expect(sum('proofs')).toBeGreaterThan(SEEDS * (canAsk ? MOVING_SWEEPS : 1));
    if (canAsk && sort === 'updated-desc') expect(sum('found')).toBeGreaterThan(0);
  });
});
