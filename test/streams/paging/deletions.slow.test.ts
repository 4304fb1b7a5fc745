import { describe, expect, it } from 'vitest';
import { SweepLedger } from './sweep-ledger.ts';
import { ids, keys, swept, sweepsEnded } from './swept.ts';
import type { Run } from './swept.ts';

const A_MINUTE_MS = 60_000;

describe('a list that is cut off at 40 while it has more, the newest first, with one new record a minute', () => {
  const all = (at: number) => ids(1, 60 + Math.floor(at / A_MINUTE_MS)).reverse();
  /** The records that are shown at first, read by the initial snapshot. */
  const shown = () => {
    const ledger = new SweepLedger(keys(21, 60));
    swept({ list: all, cap: 40, ledger });
    return ledger;
  };
  const run = (list: Run['list'], ends: number, ledger = shown()) =>
    swept({
      ...{ list, ledger, cap: 40, limitPercent: 5 },
      ...{ intervalMs: 20_000, proofMs: A_MINUTE_MS, until: sweepsEnded(ends) },
    });

  it('loses none of the records that are pushed out, and the log says that it seems to be cut off', () => {
    const { gone, cuts, ledger } = run(all, 60);
    expect(gone).toEqual([]);
    expect(ledger.count()).toBeGreaterThan(55);
    expect(cuts.length).toBeGreaterThan(10);
    expect(new Set(cuts)).toEqual(new Set([40]));
  });

  it('loses none, either, where polls find all that is new', () => {
    const ledger = shown();
    ledger.isPolled = true;
    expect(run(all, 60, ledger).gone).toEqual([]);
  });

  it('loses what is gone as soon as its total is below the cap', () => {
    const isLeft = (id: number, at: number) => at < 30 * A_MINUTE_MS || id > 52;
    const list = (at: number) => all(Math.min(at, 30 * A_MINUTE_MS)).filter((id) => isLeft(id, at));
    const { gone, cuts } = swept({
      ...{ list, ledger: shown(), cap: 40, limitPercent: 100 },
      ...{ intervalMs: 20_000, proofMs: A_MINUTE_MS, until: sweepsEnded(120) },
    });
    expect(gone).toEqual(expect.arrayContaining(keys(21, 52)));
    expect(cuts.length).toBeGreaterThan(0);
  });
});

it.each([
  ['stands still', () => 40],
  ['grows by steps of ten', (at: number) => 40 + 10 * Math.floor(at / (4 * A_MINUTE_MS))],
  ['grows by one step after long', (at: number) => (at < 12 * A_MINUTE_MS ? 40 : 100)],
] as const)(
  'a total that %s while new keys come in and none is deleted proves that none is gone',
  (_, cap) => {
    const all = (at: number) => ids(1, 60 + Math.floor(at / (A_MINUTE_MS / 2))).reverse();
    const { gone } = swept({
      ...{ list: all, ledger: new SweepLedger(keys(21, 60)), cap, limitPercent: 100 },
      ...{ intervalMs: 20_000, proofMs: A_MINUTE_MS, until: sweepsEnded(60) },
    });
    expect(gone).toEqual([]);
  },
);

describe('a list that never holds still while its records are deleted one or two at a time', () => {
  const PROOF_MS = 10_000;
  const STILL_FROM = 60_000;

  /** A list of 338, not sorted by its keys, whose total moves between any two pages until it comes to rest. */
  const shrinking = (deleted: number) => (at: number) => {
    const gone = Math.min(deleted, 2 * Math.floor(at / 4_000));
    const left = ids(1 + gone, 338);
    const isMoved = at < STILL_FROM && at % 16 >= 8;
    return [...left.filter((id) => id % 2 === 0), ...left.filter((id) => id % 2 > 0)].concat(
      isMoved ? [999] : [],
    );
  };
  const run = (list: Run['list'], sweeps: number) =>
    swept({
      ...{ list, ledger: new SweepLedger(keys(1, 338)), limitPercent: 5 },
      ...{ intervalMs: 2_000, proofMs: PROOF_MS, until: sweepsEnded(sweeps) },
    });

  it.each([17, 25])('loses all %d once it is quiet, and none is held back', (deleted) => {
    const { gone, goneAt, held } = run(shrinking(deleted), 45);
    expect(held).toEqual([]);
    expect(gone.map(Number).filter((id) => id < 999).sort((a, b) => a - b)).toEqual(ids(1, deleted)); // prettier-ignore
    expect(Math.min(...goneAt)).toBeGreaterThan(STILL_FROM);
    expect(Math.max(...goneAt)).toBeLessThan(STILL_FROM + 2 * PROOF_MS);
  });

  it('keeps records that vanish all at once', () => {
    const list = (at: number) => ids(1, at < 5_000 ? 338 : 313);
    const { gone, held } = run(list, 30);
    expect([gone, held.at(-1)]).toEqual([[], { gone: 25, known: 338 }]);
  });
});
