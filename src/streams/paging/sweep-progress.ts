import type { Position } from './anchors.ts';
import type { ScanPage } from './pages.ts';
import { recordsOf } from '../decode/answer.ts';
import { countsAfter, NOTHING_COUNTED, sizeOf } from './reading-counts.ts';
import type { ReadingCounts } from './reading-counts.ts';

/**
 * What a sweep has shown. `complete`: the whole list was read, and it was not empty. `exact`: with
 * as many distinct keys as a `total_records` that held still. `doubtful`: it was read to its end, but
 * did not add up, however often it was read, or not at one go. `nothing`: none of it.
 */
export type Proof = 'nothing' | 'doubtful' | 'complete' | 'exact';

/** A sweep that was exact, and when that was known: ms on the local clock. */
export interface ExactSweep {
  readonly number: number;
  readonly at: number;
}

/**
 * How far the sweeps of a list have come: complete readings, one after the other, each with the
 * next number. Plain JSON: it is kept beside the marks that tell which sweep saw a key last.
 */
export interface SweepProgress {
  /** Of the newest sweep; 0 before the first. */
  readonly number: number;
  /** When its first page was asked for, ms on the local clock. */
  readonly beganAt: number;
  readonly phase: 'reading' | 'removing' | 'done';
  /** Where the reading goes on. */
  readonly position: Position | null;
  /** `total_records` for as long as it holds still; `moved` from the first page on that tells another one, or none. */
  readonly total: number | 'not known yet' | 'moved';
  /** Distinct keys read. */
  readonly distinct: number;
  /** What it has met beside those; null where an older version has read a part of it. */
  readonly counts: ReadingCounts | null;
  /** Of the newest sweep that was read to its end. */
  readonly proof: Proof;
  /** Exact sweeps that a proof may begin with, the oldest first: none since has shown nothing. */
  readonly row: readonly ExactSweep[];
  /** Up to which key the missing ones have been asked for once; null before the first. */
  readonly askedUpTo: string | null;
  /** When all of them had been, ms on the local clock; null before. */
  readonly askedAt: number | null;
  /** Whether another process read a part of it, or this one before a failure. */
  readonly interrupted: boolean;
  /** Deletions that sweeps have led to, since a time (ms on the local clock). */
  readonly removed: { readonly count: number; readonly since: number };
  /** When all this was kept, ms on the local clock. */
  readonly keptAt: number;
}

/** Where a list stands that no sweep has read. */
export const NO_SWEEP: SweepProgress = {
  number: 0,
  beganAt: 0,
  phase: 'done',
  position: null,
  total: 'not known yet',
  distinct: 0,
  counts: null,
  proof: 'nothing',
  row: [],
  askedUpTo: null,
  askedAt: null,
  interrupted: false,
  removed: { count: 0, since: 0 },
  keptAt: 0,
};

const AN_HOUR_MS = 3_600_000;

/** Deletions of the last hour, or of a little more. */
export function removedLately({ removed }: SweepProgress, now: number): number {
  return now - removed.since < AN_HOUR_MS ? removed.count : 0;
}

/** What {@link takenOver} has to know. */
export interface TakeOver {
  readonly canBeAsked: boolean;
  /** ms on the clock of the process that takes it over. */
  readonly now: number;
  /** Whether others may have read the list since this was kept, of whose sightings nothing is known. */
  readonly byOthers: boolean;
}

/**
 * The progress as it counts for a process that takes it over. What was absent then may be there
 * again: a sweep that goes on where it was is not proof enough, and what was to be removed has to be
 * absent from a later sweep, unless it is asked for.
 *
 * The time in which nobody had the list counts for no proof: then a clock that was set meanwhile does no harm.
 */
export function takenOver(
  sweep: SweepProgress,
  { canBeAsked, now, byOthers }: TakeOver,
): SweepProgress {
  const { phase, row, askedAt, keptAt } = sweep;
  const away = now - keptAt;
  const over: SweepProgress = {
    ...sweep,
    row: row.map(({ number, at }) => ({ number, at: at + away })),
    askedAt: askedAt === null ? null : askedAt + away,
    ...(byOthers && { row: [], askedUpTo: null, askedAt: null }),
    keptAt: now,
  };
  if (phase === 'reading') return { ...over, interrupted: true };
  return phase === 'done' || canBeAsked ? over : { ...over, phase: 'done' };
}

/** The sweep after more deletions. */
export function withRemoved(sweep: SweepProgress, count: number, now: number): SweepProgress {
  if (count === 0) return sweep;
  const before = removedLately(sweep, now);
  const since = before > 0 ? sweep.removed.since : now;
  return { ...sweep, removed: { count: before + count, since } };
}

/** The next sweep, whose first page was asked for at a time. */
export function nextSweep(last: SweepProgress, beganAt: number): SweepProgress {
  const { number, proof, row, removed } = last;
  const counts = NOTHING_COUNTED;
  const begun = { number: number + 1, beganAt, phase: 'reading', counts } as const;
  return { ...NO_SWEEP, ...begun, proof, row, removed };
}

/** What a page comes to, beside what it says. */
export interface SweptPage {
  /** How many keys of the page this sweep had not read before. */
  readonly fresh: number;
  /** How many keys of the page are not wanted, of those that this sweep had not read before. */
  readonly leftOut: number;
  /** Where on the page what has no key of its own stands. */
  readonly rejectedAt: readonly number[];
  /** False when the list did not add up and was not read to the end of its doubts. */
  readonly settled: boolean;
  /** ms on the local clock. */
  readonly now: number;
  /** How long what is absent has to stay so, ms. */
  readonly proofMs: number;
}

/** The sweep after one more page. */
export function sweepAfter(
  sweep: SweepProgress,
  { answer, offset, next }: ScanPage,
  { fresh, leftOut, rejectedAt, settled, now, proofMs }: SweptPage,
): SweepProgress {
  const { total_records } = answer.pagination;
  const still = sweep.total === 'not known yet' || sweep.total === total_records;
  const total = (still ? total_records : undefined) ?? 'moved';
  const distinct = sweep.distinct + fresh;
  const { length } = recordsOf(answer);
  const { serverTime } = answer;
  const at = { first: serverTime ?? sweep.beganAt, later: serverTime ?? now };
  const page = { offset, length, at, rejectedAt, leftOut, settled };
  const counts = sweep.counts && countsAfter(sweep.counts, page);
  if (next) return { ...sweep, total, distinct, counts, position: next };
  // A list that is suddenly empty proves nothing: such an answer is more likely than the fact. It
  // may be so in the middle of a sweep, too: then the last page is the empty one.
  const isEmpty = distinct === 0 || length === 0;
  const isExact = total === distinct;
  const isDoubtful = !settled || sweep.interrupted;
  const proof = isEmpty ? 'nothing' : isDoubtful ? 'doubtful' : isExact ? 'exact' : 'complete';
  return {
    ...sweep,
    phase: 'removing',
    position: null,
    total,
    distinct,
    counts,
    proof,
    row: rowAfter(sweep, proof, now, proofMs),
  };
}

/** After the last page of an initial snapshot. */
export function snapshotDone(sweep: SweepProgress, now: number): SweepProgress {
  // The first sweep is due an interval after it, and no proof begins with it.
  return { ...sweep, phase: 'done', beganAt: now, row: [] };
}

/** The row is kept short: of the sweeps within the time of a proof about so many. */
const SWEEPS_A_PROOF = 10;

/** One that is not exact adds nothing to the row; one that shows nothing ends it. */
function rowAfter(sweep: SweepProgress, proof: Proof, now: number, proofMs: number): ExactSweep[] {
  if (proof === 'nothing') return [];
  const { number, row } = sweep;
  const newest = row.at(-1);
  const isDue = !newest || now - newest.at >= proofMs / SWEEPS_A_PROOF;
  const more = proof === 'exact' && isDue ? [{ number, at: now }] : [];
  // Whatever is gone since an earlier one is gone since the newest that is old enough.
  const begin = row.findLastIndex((each) => isOldEnough(each, sweep, proofMs));
  return [...row.slice(Math.max(0, begin)), ...more];
}

/** Whether a sweep was asked for only after a proof that began with another one. */
function isOldEnough({ at }: ExactSweep, { beganAt }: SweepProgress, proofMs: number): boolean {
  return at + proofMs <= beganAt;
}

const AGREEING: ReadonlySet<Proof> = new Set<Proof>(['complete', 'exact']);

/**
 * Whether what the newest sweep has not seen may be gone. Where a record can be asked for by its key
 * any sweep that has shown something is good enough to ask.
 */
export function showsAbsence({ phase, proof }: SweepProgress, canBeAsked: boolean): boolean {
  return phase === 'removing' && (canBeAsked ? proof !== 'nothing' : AGREEING.has(proof));
}

/**
 * Whether the newest sweep has read the record of each of so many images: then none is missing, and nobody has to look for
 * it key by key. A record that was deleted since it was read may hide a missing one, until the next sweep.
 */
export function hasReadAll({ distinct, counts }: SweepProgress, images: number): boolean {
  if (!counts || distinct !== images) return false;
  const { leftOut, unpublished, undecided } = counts; // these may have none
  return leftOut + sizeOf(unpublished) + sizeOf(undecided) === 0;
}

/**
 * Where nothing can be asked for: the number of the sweep since which a key must have been seen, or it
 * is gone; undefined when that can't be told yet.
 *
 * A key has to be absent from an exact sweep, from another that began `proofMs` later, and from each
 * in between. An index that is wrong for less shows itself to one of the two at most. Were the other not
 * exact, it could have missed the key in a list that moves.
 */
export function seenSince(sweep: SweepProgress, proofMs: number): number | undefined {
  const { phase, number, proof, row } = sweep;
  if (phase !== 'removing' || proof !== 'exact') return undefined;
  return row.findLast((each) => each.number < number && isOldEnough(each, sweep, proofMs))?.number;
}

/** How long what was asked for once still has to stay gone before it is asked for again, ms. */
export function proofLeft({ askedAt }: SweepProgress, now: number, proofMs: number): number {
  return askedAt === null ? 0 : Math.min(proofMs, Math.max(0, askedAt + proofMs - now));
}
