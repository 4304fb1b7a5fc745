import { readingRules } from '../../../src/description/levels.ts';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { describe, expect, it } from 'vitest';
import { BEGINNING } from '../../../src/streams/paging/anchors.ts';
import {
  hasReadAll,
  NO_SWEEP,
  nextSweep,
  proofRemainingMs,
  deletedUnlessSeenSince,
  showsAbsence,
  sweepAfter,
  resumedSweep,
} from '../../../src/streams/paging/sweep-progress.ts';
import { NO_COUNTS } from '../../../src/streams/paging/scan-counts.ts';
import type {
  Proof as AnyProof,
  SweepProgress,
} from '../../../src/streams/paging/sweep-progress.ts';
import { answer } from './moving-list.ts';

/** A page as it counts for a sweep: the list's total, keys not read before, whether it is the last. */
interface Told {
  readonly total: number | undefined;
  readonly fresh: number;
  readonly last?: boolean;
  readonly settled?: boolean;
  /** Records of the page. Default one. */
  readonly records?: number;
}

/** What a reading without an order comes to. */
type Proof = Exclude<AnyProof, 'anchored'>;

const PROOF_MS = 60_000;
/** When pages are kept. */
const KEPT_AT = 1_500;

function read(sweep: SweepProgress, ...pages: Told[]): SweepProgress {
  return readAt(KEPT_AT, sweep, ...pages);
}

function readAt(now: number, sweep: SweepProgress, ...pages: Told[]): SweepProgress {
  return pages.reduce((before, { total, fresh, last = false, settled = true, records = 1 }) => {
    const page = {
      answer: answer(Array<null>(records).fill(null), {
        total,
        hasNext: !last,
      }),
      offset: 0,
      next: last ? undefined : { ...BEGINNING, offset: before.distinct + fresh },
    };
    return sweepAfter(before, page, {
      ...{ fresh, leftOut: 0, rejectedAt: [] },
      ...{
        isConsistent: settled,
        ordered: true,
        isPolled: false,
        rules: readingRules(listNamed(WINE, 'orders')),
        pageSize: 10,
        now,
        proofMs: PROOF_MS,
      },
    });
  }, sweep);
}

/** A sweep that is read in two pages, the last of which says what it proves; it takes half a second. */
function sweepOf(proof: Proof, last: SweepProgress, beganAt = 1_000): SweepProgress {
  const sweep = nextSweep(last, beganAt);
  const total = { exact: 33, complete: 34, doubtful: 33, nothing: 33 }[proof];
  const settled = proof !== 'doubtful';
  const records = proof === 'nothing' ? 0 : 1;
  const pages = [
    { total: 33, fresh: 23 },
    { total, fresh: 10, last: true, settled, records },
  ];
  return { ...readAt(beganAt + 500, sweep, ...pages), phase: 'removing' };
}

/** Sweeps that begin at these times, and what each says of who has not been seen since when. */
function sweepsAt(...sweeps: readonly [beganAt: number, proof: Proof][]) {
  let sweep = NO_SWEEP;
  const since = sweeps.map(([beganAt, proof]) =>
    deletedUnlessSeenSince((sweep = sweepOf(proof, sweep, beganAt)), PROOF_MS),
  );
  return { since, sweep };
}

describe('a sweep', () => {
  const first = nextSweep(NO_SWEEP, 1_000);

  it('begins with the next number, at the beginning, and keeps what was proved before', () => {
    const begun = { phase: 'reading', counts: NO_COUNTS } as const;
    expect(first).toEqual({ ...NO_SWEEP, number: 1, beganAt: 1_000, ...begun });
    const exact = read(first, { total: 2, fresh: 2, last: true });
    expect(nextSweep(exact, 2_000)).toEqual({
      ...NO_SWEEP,
      number: 2,
      beganAt: 2_000,
      ...begun,
      proof: 'exact',
      proving: [exact.newest],
      peak: 2,
    });
    expect(exact.newest).toEqual({ number: 1, beganAt: 1_000, at: KEPT_AT });
  });

  it('proves nothing after a page that was not consistent, even if it was resumed behind that page', () => {
    const stale = { total: 2, fresh: 1, settled: false };
    const swept = read(first, stale, { total: 2, fresh: 1, last: true });
    expect([swept.proof, swept.newest]).toEqual(['doubtful', null]);
  });

  it('keeps the position and the distinct keys of each page until the last', () => {
    const half = read(first, { total: 50, fresh: 20 }, { total: 50, fresh: 15 });
    const position = { ...BEGINNING, offset: 35 };
    const { counts } = half;
    expect(half).toEqual({
      ...first,
      total: 50,
      top: 50,
      peak: 50,
      distinct: 35,
      counts,
      position,
    });
    const done = read(half, { total: 50, fresh: 15, last: true });
    expect(done).toMatchObject({ phase: 'removing', position: null, distinct: 50, proof: 'exact' });
  });

  it.each<[Proof, string, Told[]]>([
    [
      'exact',
      'as many keys as a total that held still',
      [
        { total: 9, fresh: 5 },
        { total: 9, fresh: 4, last: true },
      ],
    ],
    [
      'complete',
      'fewer keys than the total',
      [
        { total: 9, fresh: 5 },
        { total: 9, fresh: 3, last: true },
      ],
    ],
    [
      'complete',
      'more keys than the total',
      [
        { total: 9, fresh: 5 },
        { total: 9, fresh: 5, last: true },
      ],
    ],
    [
      'complete',
      'as many keys as a total that has just moved',
      [
        { total: 8, fresh: 5 },
        { total: 9, fresh: 4, last: true },
      ],
    ],
    [
      'complete',
      'a total that moved and came back',
      [
        { total: 9, fresh: 4 },
        { total: 8, fresh: 3 },
        { total: 9, fresh: 2, last: true },
      ],
    ],
    [
      'doubtful',
      'a list that did not add up',
      [
        { total: 9, fresh: 5 },
        { total: 9, fresh: 4, last: true, settled: false },
      ],
    ],
    [
      'nothing',
      'an empty list that did not add up',
      [{ total: 9, fresh: 0, last: true, records: 0, settled: false }],
    ],
    ['nothing', 'an empty list', [{ total: 0, fresh: 0, last: true, records: 0 }]],
    [
      'nothing',
      'a list that is empty all at once',
      [
        { total: 9, fresh: 5 },
        { total: 0, fresh: 0, last: true, records: 0 },
      ],
    ],
    [
      'nothing',
      'pages without a record of their own',
      [
        { total: 9, fresh: 0 },
        { total: 9, fresh: 0, last: true },
      ],
    ],
  ])('proves: %s, by %s', (proof, _, pages) => {
    expect(read(first, ...pages)).toMatchObject({
      proof,
      proving: proof === 'exact' ? [{ number: 1, at: KEPT_AT }] : [],
    });
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
  const removing = { ...read(sweep, { total: 9, fresh: 9, last: true }), keptAt: KEPT_AT };
  const here = { canRequestRecords: false, now: KEPT_AT, byOthers: false };

  it('lets a sweep go on where it was, to prove less', () => {
    const half = { ...read(sweep, { total: 9, fresh: 5 }), keptAt: KEPT_AT };
    for (const canBeAsked of [true, false]) {
      const over = resumedSweep(half, { ...here, canRequestRecords: canBeAsked });
      const done = read(over, { total: 9, fresh: 4, last: true });
      expect(done).toMatchObject({ proof: 'doubtful', distinct: 9, number: 7 });
      expect(nextSweep(done, 2_000).interrupted).toBe(false);
    }
  });

  it('gives up what was to be removed, unless it is asked for', () => {
    expect(resumedSweep(removing, { ...here, canRequestRecords: true })).toEqual(removing);
    expect(resumedSweep(removing, here)).toEqual({ ...removing, phase: 'done' });
  });

  it('changes nothing between sweeps', () => {
    const done = { ...removing, phase: 'done' } as const;
    const none = { ...NO_SWEEP, keptAt: KEPT_AT };
    expect([resumedSweep(done, here), resumedSweep(none, here)]).toEqual([done, none]);
  });

  it.each([
    ['a process that was away for an hour', 3_600_000],
    ['a clock that was set back', -3_600_000],
  ])('counts no more of a proof than was seen: %s', (_, away) => {
    // Kept a third of the proof's time after the first sweep.
    const { sweep: first } = sweepsAt([0, 'exact']);
    const kept: SweepProgress = { ...first, phase: 'done', askedAt: 500, keptAt: 20_500 };
    const now = 20_500 + away;
    const over = resumedSweep(kept, { ...here, now });
    expect(over).toMatchObject({
      proving: [{ number: 1, at: now - 20_000 }],
      askedAt: now - 20_000,
      keptAt: now,
    });
    expect(proofRemainingMs(over, now, PROOF_MS)).toBe(40_000);
    expect(deletedUnlessSeenSince(sweepOf('exact', over, now + 39_999), PROOF_MS)).toBeUndefined();
    expect(deletedUnlessSeenSince(sweepOf('exact', over, now + 40_000), PROOF_MS)).toBe(1);
    // What is taken over again at once is as it was.
    expect(resumedSweep(over, { ...here, now })).toEqual(over);
  });

  it('begins all proofs anew where others may have seen what is missing', () => {
    const kept: SweepProgress = { ...removing, askedUpTo: 'k', askedAt: 500 };
    const over = resumedSweep(kept, { ...here, byOthers: true });
    expect(over).toMatchObject({ proving: [], askedUpTo: null, askedAt: null });
    expect(deletedUnlessSeenSince(sweepOf('exact', over, 99_000), PROOF_MS)).toBeUndefined();
  });
});

describe('showsAbsence', () => {
  it.each<[Proof, canRequestRecords: boolean, cannot: boolean]>([
    ['nothing', false, false],
    ['doubtful', true, false],
    ['complete', true, true],
    ['exact', true, true],
  ])('of a sweep that proved %s', (proof, canRequestRecords, cannot) => {
    const sweep: SweepProgress = { ...NO_SWEEP, number: 7, phase: 'removing', proof };
    expect([showsAbsence(sweep, true), showsAbsence(sweep, false)]).toEqual([
      canRequestRecords,
      cannot,
    ]);
    for (const phase of ['reading', 'done'] as const) {
      expect(showsAbsence({ ...sweep, phase }, true)).toBe(false);
    }
  });
});

describe('hasReadAll', () => {
  const one = { keys: ['one'], more: 0 };
  it.each([
    ['as many keys as there are images', {}, 3, true],
    ['fewer', {}, 4, false],
    ['more: some may be of images that are gone', {}, 2, false],
    ['a key that START_FROM has left out', { leftOut: 1 }, 3, false],
    ['a key that could not be published', { unpublished: one }, 3, false],
    ['a key that is undecided', { undecided: one }, 3, false],
    ['records without a key', { rejected: 2 }, 3, true],
  ])('holds what was read against the number of images: %s', (_, more, images, is) => {
    const counts = { ...NO_COUNTS, ...more };
    expect(hasReadAll({ ...NO_SWEEP, distinct: 3, counts }, images)).toBe(is);
  });

  it('is not known before the first sweep', () => {
    expect(hasReadAll(NO_SWEEP, 0)).toBe(false);
  });
});

describe('seenSince', () => {
  it.each<[Proof, Proof, number?]>([
    ['complete', 'complete'],
    ['complete', 'exact'],
    ['exact', 'complete'],
    ['exact', 'exact', 1],
    ['doubtful', 'exact'],
    ['exact', 'doubtful'],
    ['nothing', 'exact'],
    ['exact', 'nothing'],
  ])('after a sweep that proved %s, and a proof later %s', (first, last, since) => {
    expect(sweepsAt([0, first], [60_500, last]).since.at(-1)).toBe(since);
  });

  it('is not sooner than the time of a proof from the end of one to the beginning of another', () => {
    expect(sweepsAt([0, 'exact'], [60_499, 'exact']).since.at(-1)).toBeUndefined();
    expect(sweepsAt([0, 'exact'], [60_500, 'exact']).since.at(-1)).toBe(1);
  });

  it('does not count sweeps: hundreds within the time prove nothing', () => {
    const often = Array.from({ length: 100 }, (_, k) => [k * 600, 'exact'] as [number, Proof]);
    expect(sweepsAt(...often).since.every((each) => each === undefined)).toBe(true);
    expect(sweepsAt(...often, [60_500, 'exact']).since.at(-1)).toBe(1);
  });

  it('a wrong index and a sweep that misses some prove nothing together, in whatever order', () => {
    const { since } = sweepsAt(
      [0, 'exact'],
      [70_000, 'complete'],
      [140_000, 'complete'],
      [150_000, 'exact'],
      [220_000, 'complete'],
    );
    expect(since).toEqual([undefined, undefined, undefined, 1, undefined]);
  });

  it.each<[Proof, (number | undefined)[]]>([
    ['complete', [1, 3]],
    ['doubtful', [1, 3]],
    ['nothing', [undefined, 3]],
  ])('after one in between that proves: %s', (proof, then) => {
    const { since } = sweepsAt(
      [0, 'exact'],
      [30_000, proof],
      [70_000, 'exact'],
      [140_000, 'exact'],
    );
    expect(since.slice(2)).toEqual(then);
  });

  it('keeps of however many sweeps only few', () => {
    const often = Array.from({ length: 1_000 }, (_, k) => [k * 600, 'exact'] as [number, Proof]);
    expect(sweepsAt(...often).sweep.proving.length).toBeLessThan(13);
    const daily = Array.from(
      { length: 50 },
      (_, k) => [k * 86_400_000, 'exact'] as [number, Proof],
    );
    expect(sweepsAt(...daily).sweep.proving).toHaveLength(2);
  });

  it('says nothing before the first sweep', () => {
    expect(
      deletedUnlessSeenSince({ ...NO_SWEEP, phase: 'removing', proof: 'exact' }, 0),
    ).toBeUndefined();
  });

  it('needs two sweeps also where no time is asked for', () => {
    const first = sweepOf('exact', NO_SWEEP, 1_000);
    expect(deletedUnlessSeenSince(first, 0)).toBeUndefined();
    expect(deletedUnlessSeenSince({ ...first, beganAt: 5_000 }, 0)).toBeUndefined(); // however late it is kept
    expect(deletedUnlessSeenSince(sweepOf('exact', first, 1_500), 0)).toBe(1);
  });
});

describe('proofLeft', () => {
  it('is what is left of the time since all was asked for once, and never more than all of it', () => {
    const left = (askedAt: number | null, now: number) =>
      proofRemainingMs({ ...NO_SWEEP, askedAt }, now, PROOF_MS);
    expect([left(null, 5), left(100, 100), left(100, 50_100), left(100, 60_100)]).toEqual([
      0, 60_000, 10_000, 0,
    ]);
    expect([left(100, 99_999), left(99_999, 100)]).toEqual([0, 60_000]);
  });
});
it.each([
  ['any', [undefined, undefined]],
  ['the first', [undefined, 30]],
  ['the last', [30, undefined]],
])('a total that is missing on %s page proves nothing', (_, [first, last]) => {
  const pages = [
    { total: first, fresh: 20 },
    { total: last, fresh: 10, last: true },
  ];
  expect(read(nextSweep(NO_SWEEP, 1_000), ...pages)).toMatchObject({
    proof: 'complete',
    total: 'moved',
  });
});
