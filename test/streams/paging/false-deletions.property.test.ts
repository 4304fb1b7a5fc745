import {
  concatMap,
  defer,
  delay,
  map,
  of,
  Subject,
  takeWhile,
  tap,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import { sweeps } from '../../../src/streams/paging/sweeps.ts';
import { scaled } from '../../support/scale.ts';
import { ATTACKED_SORTS, AttackedList } from './attacked-list.ts';
import type { Attack } from './attacked-list.ts';
import { keyOfId, randomOf } from './moving-list.ts';
import { SweepLedger } from './sweep-ledger.ts';

const SEEDS = Number(process.env.SEEDS ?? scaled(3, 2_000));
const PROOF_MS = 6_000;
const REQUEST_MS = 250;
const POLL_MS = 1_000;
const LOOKBACK_MS = 2_500;

vi.setConfig({ testTimeout: 600_000 });

interface Outcome {
  /** Keys of records that exist, and were told to be gone. */
  readonly false: readonly string[];
  /** How long after each deletion it was told, ms. */
  readonly delays: number[];
  /** Records that are gone, and were not told. */
  readonly untold: number;
  readonly cuts: number;
}

interface Swept {
  readonly isPolled: boolean;
  readonly pageSize: number;
  readonly untilMs: number;
}

/** Sweeps an attacked list beside polls, in virtual time. */
function swept(attack: Attack, { isPolled, pageSize, untilMs }: Swept): Outcome {
  const scheduler = new VirtualTimeScheduler(undefined, untilMs);
  const list = new AttackedList(attack);
  const ledger = new SweepLedger();
  ledger.isPolled = isPolled;
  ledger.pageSize = pageSize;
  const polled$ = new Subject<void>();
  const outcome = { false: [] as string[], delays: [] as number[], untold: 0, cuts: 0 };
  const place = pageSlots(1);
  if (isPolled) {
    timer(POLL_MS, POLL_MS, scheduler).subscribe(() => {
      const now = scheduler.now();
      ledger.see(list.changedSince(now - LOOKBACK_MS, now).map(({ id }) => String(id)));
      polled$.next();
    });
  }
  sweeps({
    progress: () => ledger.progress,
    scan: (from, onTrouble) =>
      pages({
        request: ({ offset, pageSize }) =>
          defer(() =>
            timer(REQUEST_MS, scheduler).pipe(
              map(() => list.page(offset, pageSize, scheduler.now())),
            ),
          ),
        keyOf: keyOfId,
        pageSize,
        overlap: 3,
        permit: () => place.acquire,
        from,
        onTrouble,
      }),
    pageSlots: place,
    records: ledger,
    ...(isPolled && { pollsCompleted$: polled$ }),
    emptySpan: () => ({ begin: 1, end: 2 }),
    pace: { intervalMs: 200 },
    deletions: { proofMs: PROOF_MS, limitPercent: 100, onCut: () => (outcome.cuts += 1) },
    scheduler,
  })
    .pipe(
      concatMap((step) => of(step).pipe(delay(1, scheduler))),
      tap((step) => {
        const now = scheduler.now();
        for (const key of ledger.keep(step, now, PROOF_MS)) {
          if (list.has(Number(key), now)) outcome.false.push(`${key} at ${now}`);
          else outcome.delays.push(now - list.goneSince(Number(key)));
        }
        place.release();
      }),
      takeWhile(() => outcome.false.length === 0),
    )
    .subscribe();
  scheduler.flush();
  outcome.untold = ledger.keys().filter((key) => !list.has(Number(key), untilMs)).length;
  return outcome;
}

/** Caps are round, and no smaller than a page. */
const CAPS = [20, 30, 40, 64, 80, 100, 120, 150, 160, 200];
const NEVER = { from: Infinity, to: Infinity };

/** An attack by a seed: each trait is drawn by itself, so that they meet. */
function attackOf(seed: number): { readonly attack: Attack; readonly how: Swept } {
  const random = randomOf(seed);
  const pick = <T>(...from: readonly T[]): T => from[random(from.length)]!;
  const size = pick(10, 40, 80, 150);
  const pageSize = pick(10, 20, 40, 200);
  const isPolled = random(2) === 0;
  const wrongFrom = 1_000 + random(25_000);
  const attack: Attack = {
    seed,
    sort: pick(...ATTACKED_SORTS),
    size,
    changeEveryMs: pick(100, 400, 2_000),
    added: pick(0.05, 0.1, 0.2, 0.3),
    deleted: pick(0.05, 0.1, 0.2, 0.3),
    stillFrom: 15_000 + random(15_000),
    cap: pick(Infinity, Infinity, ...CAPS.filter((cap) => cap >= pageSize && cap > size / 2)),
    capped: pick('total', 'total', 'offset', 'next'),
    wrong:
      random(2) === 0
        ? NEVER
        : { from: wrongFrom, to: wrongFrom + pick(100, 1_000, PROOF_MS - 500) },
    lagMs: pick(0, 0, 300, 2_000),
    estimate: pick<Attack['estimate']>('exact', 'exact', 'tens', 1_000),
    hasTimes: isPolled || random(2) === 0,
  };
  // Not covered, see docs/resources.md: an estimate of all records that happens to be the number of those in front of a cut.
  const isMisled = attack.cap < Infinity && attack.capped !== 'total' && attack.estimate === 'tens';
  return {
    attack: isMisled ? { ...attack, estimate: 'exact' } : attack,
    how: { isPolled, pageSize, untilMs: 45_000 },
  };
}

describe('sweeps of a list that moves, is cut off, counted wrong, or shown in part', () => {
  it(`tell of no record that exists that it is gone, in ${SEEDS} lists`, () => {
    let told = 0;
    const wrong: string[] = [];
    const from = Number(process.env.FALSE_SEED ?? 1);
    for (let seed = from; seed < from + SEEDS; seed++) {
      const { attack, how } = attackOf(seed);
      const outcome = swept(attack, how);
      told += outcome.delays.length;
      if (outcome.false.length > 0)
        wrong.push(
          `seed ${seed}: ${outcome.false.join()} ${JSON.stringify({ ...attack, ...how })}`,
        );
    }
    expect(wrong).toEqual([]);
    expect(told).toBeGreaterThan(SEEDS);
  });
});
