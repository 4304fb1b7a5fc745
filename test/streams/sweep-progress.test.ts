import { describe, expect, it } from 'vitest';
import { BEGINNING } from '../../src/streams/anchors.ts';
import {
  NO_SWEEP,
  nextSweep,
  removedLately,
  seenSince,
  sweepAfter,
  takenOver,
  withRemoved,
} from '../../src/streams/sweep-progress.ts';
import type { Proof, SweepProgress } from '../../src/streams/sweep-progress.ts';
import { answer } from './moving-list.ts';

/** A page as it counts for a sweep: the list's total, keys not read before, whether it is the last. */
interface Told {
  readonly total: number;
  readonly fresh: number;
  readonly last?: boolean;
  readonly settled?: boolean;
  /** Records of the page. Default one. */
  readonly records?: number;
}

function read(sweep: SweepProgress, ...pages: Told[]): SweepProgress {
  return pages.reduce((before, { total, fresh, last = false, settled = true, records = 1 }) => {
    const page = {
      answer: answer(Array<null>(records).fill(null), {
        total_records: total,
        has_next_page: !last,
      }),
      offset: 0,
      next: last ? undefined : { ...BEGINNING, offset: before.distinct + fresh },
    };
    return sweepAfter(before, page, { fresh, settled });
  }, sweep);
}

/** A sweep that is read in two pages, the last of which says what it proves. */
function sweepOf(proof: Proof, last: SweepProgress): SweepProgress {
  const sweep = nextSweep(last, 1_000);
  const total = { exact: 30, complete: 31, doubtful: 30, nothing: 30 }[proof];
  const settled = proof !== 'doubtful';
  const records = proof === 'nothing' ? 0 : 1;
  const pages = [
    { total: 30, fresh: 20 },
    { total, fresh: 10, last: true, settled, records },
  ];
  return { ...read(sweep, ...pages), phase: 'removing' };
}

describe('a sweep', () => {
  const first = nextSweep(NO_SWEEP, 1_000);

  it('begins with the next number, at the beginning, and keeps what was proved before', () => {
    expect(first).toEqual({ ...NO_SWEEP, number: 1, beganAt: 1_000, phase: 'reading' });
    const exact = read(first, { total: 2, fresh: 2, last: true });
    expect(nextSweep(exact, 2_000)).toEqual({
      ...NO_SWEEP,
      number: 2,
      beganAt: 2_000,
      phase: 'reading',
      proof: 'exact',
    });
  });

  it('keeps the position and the distinct keys of each page until the last', () => {
    const half = read(first, { total: 50, fresh: 20 }, { total: 50, fresh: 15 });
    const position = { ...BEGINNING, offset: 35 };
    expect(half).toEqual({ ...first, total: 50, distinct: 35, position });
    const done = read(half, { total: 50, fresh: 15, last: true });
    expect(done).toMatchObject({ phase: 'removing', position: null, distinct: 50, proof: 'exact' });
  });

  it.each<[Proof, string, Told[]]>([
    ['exact', 'as many keys as a total that held still', [{ total: 9, fresh: 5 }, { total: 9, fresh: 4, last: true }]], // prettier-ignore
    ['complete', 'fewer keys than the total', [{ total: 9, fresh: 5 }, { total: 9, fresh: 3, last: true }]], // prettier-ignore
    ['complete', 'more keys than the total', [{ total: 9, fresh: 5 }, { total: 9, fresh: 5, last: true }]], // prettier-ignore
    ['complete', 'as many keys as a total that has just moved', [{ total: 8, fresh: 5 }, { total: 9, fresh: 4, last: true }]], // prettier-ignore
    ['complete', 'a total that moved and came back', [{ total: 9, fresh: 4 }, { total: 8, fresh: 3 }, { total: 9, fresh: 2, last: true }]], // prettier-ignore
    ['doubtful', 'a list that did not add up', [{ total: 9, fresh: 5 }, { total: 9, fresh: 4, last: true, settled: false }]], // prettier-ignore
    ['nothing', 'an empty list that did not add up', [{ total: 9, fresh: 0, last: true, records: 0, settled: false }]], // prettier-ignore
    ['nothing', 'an empty list', [{ total: 0, fresh: 0, last: true, records: 0 }]],
    ['nothing', 'a list that is empty all at once', [{ total: 9, fresh: 5 }, { total: 0, fresh: 0, last: true, records: 0 }]], // prettier-ignore
    ['nothing', 'pages without a record of their own', [{ total: 9, fresh: 0 }, { total: 9, fresh: 0, last: true }]], // prettier-ignore
  ])('proves: %s, by %s', (proof, _, pages) => {
    expect(read(first, ...pages)).toMatchObject({ proof, proofBefore: 'nothing' });
  });

  it('says of a total that moved no more than that, whatever it comes to', () => {
    const moved = read(first, { total: 9, fresh: 4 }, { total: 8, fresh: 3 });
    expect(moved.total).toBe('moved');
    expect(read(moved, { total: 9, fresh: 1 }).total).toBe('moved');
  });

  it('is plain JSON at every step', () => {
    for (const sweep of [NO_SWEEP, first, read(first, { total: 9, fresh: 5 })]) {
      expect(JSON.parse(JSON.stringify(sweep))).toEqual(sweep);
    }
  });
});

describe('takenOver', () => {
  const sweep = nextSweep({ ...NO_SWEEP, number: 6, proof: 'exact' }, 1_000);
  const removing = read(sweep, { total: 9, fresh: 9, last: true });

  it('lets a sweep go on where it was, to prove less', () => {
    const half = read(sweep, { total: 9, fresh: 5 });
    for (const canBeAsked of [true, false]) {
      const done = read(takenOver(half, canBeAsked), { total: 9, fresh: 4, last: true });
      expect(done).toMatchObject({ proof: 'doubtful', distinct: 9, number: 7 });
      expect(nextSweep(done, 2_000).interrupted).toBe(false);
    }
  });

  it('gives up what was to be removed, unless it is asked for', () => {
    expect(takenOver(removing, true)).toEqual(removing);
    const over = takenOver(removing, false);
    expect(over).toEqual({ ...removing, phase: 'done', proof: 'doubtful' });
    const next = sweepOf('exact', over);
    expect(seenSince(next, false)).toBeUndefined();
    expect(seenSince(sweepOf('complete', next), false)).toBe(8);
  });

  it('changes nothing between sweeps', () => {
    const done = { ...removing, phase: 'done' } as const;
    expect([takenOver(done, false), takenOver(NO_SWEEP, false)]).toEqual([done, NO_SWEEP]);
  });
});

describe('seenSince', () => {
  it.each<[before: Proof, proof: Proof, canBeAsked?: number, cannot?: number]>([
    ['nothing', 'nothing'],
    ['nothing', 'complete', 7],
    ['nothing', 'exact', 7],
    ['nothing', 'doubtful', 7],
    ['doubtful', 'exact', 7],
    ['exact', 'doubtful', 7],
    ['complete', 'nothing'],
    ['complete', 'complete', 7],
    ['complete', 'exact', 7, 6],
    ['exact', 'nothing'],
    ['exact', 'complete', 7, 6],
    ['exact', 'exact', 7, 6],
  ])('after a sweep that proved %s, then %s', (proofBefore, proof, canBeAsked, cannot) => {
    const sweep: SweepProgress = { ...NO_SWEEP, number: 7, phase: 'removing', proof, proofBefore };
    expect([seenSince(sweep, true), seenSince(sweep, false)]).toEqual([canBeAsked, cannot]);
    for (const phase of ['reading', 'done'] as const) {
      expect(seenSince({ ...sweep, phase }, true)).toBeUndefined();
      expect(seenSince({ ...sweep, phase }, false)).toBeUndefined();
    }
  });

  it('says nothing before the first sweep', () => {
    expect(seenSince({ ...NO_SWEEP, phase: 'removing' }, true)).toBeUndefined();
    expect(seenSince({ ...NO_SWEEP, phase: 'removing' }, false)).toBeUndefined();
  });

  it('needs two complete sweeps in a row where nothing can be asked for: one without proof breaks it', () => {
    const proofs = ['exact', 'complete', 'complete', 'nothing', 'exact', 'doubtful', 'complete', 'exact'] as const; // prettier-ignore
    let sweep = NO_SWEEP;
    const since = proofs.map((proof) => seenSince((sweep = sweepOf(proof, sweep)), false));
    expect(since).toEqual([undefined, 1, undefined, undefined, undefined, undefined, undefined, 7]);
  });
});

describe('deletions of the last hour', () => {
  const HOUR = 3_600_000;
  const at = 1_000;
  const some = withRemoved(NO_SWEEP, 3, at);

  it('are none before the first', () => {
    expect(NO_SWEEP.removed).toEqual({ count: 0, since: 0 });
    expect(withRemoved(NO_SWEEP, 0, at)).toBe(NO_SWEEP);
  });

  it('add up, and are forgotten together an hour after the first of them', () => {
    const more = withRemoved(some, 4, at + HOUR - 1);
    expect(removedLately(some, at)).toBe(3);
    expect(removedLately(more, at + HOUR - 1)).toBe(7);
    expect(removedLately(more, at + HOUR)).toBe(0);
    expect(removedLately(withRemoved(more, 2, at + HOUR), at + HOUR)).toBe(2);
    expect(withRemoved(more, 2, at + HOUR).removed.since).toBe(at + HOUR);
  });

  it('change nothing else of a sweep, and outlive it', () => {
    expect(some).toEqual({ ...NO_SWEEP, removed: { count: 3, since: at } });
    expect(nextSweep(some, 2_000).removed).toEqual(some.removed);
  });
});
