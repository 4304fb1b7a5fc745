import type { Position } from './anchors.ts';
import type { ScanPage } from './pages.ts';

/**
 * What a sweep has shown. `complete`: the whole list was read, and it was not empty. `exact`: with
 * as many distinct keys as a `total_records` that held still. `doubtful`: it was read to its end, but
 * did not add up, however often it was read, or not at one go. `nothing`: none of it.
 */
export type Proof = 'nothing' | 'doubtful' | 'complete' | 'exact';

/**
 * How far the sweeps of a list have come: complete readings, one after the other, each with the
 * next number. Plain JSON: it is kept beside the marks that tell which sweep saw a key last.
 */
export interface SweepProgress {
  /** Of the newest sweep; 0 before the first. */
  readonly number: number;
  /** When it began, ms on the local clock. */
  readonly beganAt: number;
  readonly phase: 'reading' | 'removing' | 'done';
  /** Where the reading goes on. */
  readonly position: Position | null;
  /** `total_records` for as long as it holds still. */
  readonly total: number | 'not known yet' | 'moved';
  /** Distinct keys read. */
  readonly distinct: number;
  /** Of the newest sweep that was read to its end. */
  readonly proof: Proof;
  /** Of the sweep before that one. */
  readonly proofBefore: Proof;
  /** Whether another process read a part of it, or this one before a failure. */
  readonly interrupted: boolean;
  /** Deletions that sweeps have led to, since a time (ms on the local clock). */
  readonly removed: { readonly count: number; readonly since: number };
}

/** Where a list stands that no sweep has read. */
export const NO_SWEEP: SweepProgress = {
  number: 0,
  beganAt: 0,
  phase: 'done',
  position: null,
  total: 'not known yet',
  distinct: 0,
  proof: 'nothing',
  proofBefore: 'nothing',
  interrupted: false,
  removed: { count: 0, since: 0 },
};

const AN_HOUR_MS = 3_600_000;

/** Deletions of the last hour, or of a little more. */
export function removedLately({ removed }: SweepProgress, now: number): number {
  return now - removed.since < AN_HOUR_MS ? removed.count : 0;
}

/**
 * The progress as it counts for a process that takes it over. What was absent then may be there
 * again: a sweep that goes on where it was is not proof enough, and what was to be removed has to be
 * absent from later sweeps, unless it is asked for.
 */
export function takenOver(sweep: SweepProgress, canBeAsked: boolean): SweepProgress {
  if (sweep.phase === 'reading') return { ...sweep, interrupted: true };
  if (sweep.phase === 'done' || canBeAsked) return sweep;
  return { ...sweep, phase: 'done', proof: 'doubtful' };
}

/** The sweep after more deletions. */
export function withRemoved(sweep: SweepProgress, count: number, now: number): SweepProgress {
  if (count === 0) return sweep;
  const before = removedLately(sweep, now);
  const since = before > 0 ? sweep.removed.since : now;
  return { ...sweep, removed: { count: before + count, since } };
}

/** The next sweep, about to be read. */
export function nextSweep(last: SweepProgress, now: number): SweepProgress {
  const { number, proof, proofBefore, removed } = last;
  const begun = { number: number + 1, beganAt: now, phase: 'reading' } as const;
  return { ...NO_SWEEP, ...begun, proof, proofBefore, removed };
}

/**
 * The sweep after one more page.
 *
 * @param fresh how many keys of the page this sweep had not read before.
 * @param settled false when the list did not add up and was not read to the end of its doubts.
 */
export function sweepAfter(
  sweep: SweepProgress,
  { answer, next }: ScanPage,
  { fresh, settled }: { readonly fresh: number; readonly settled: boolean },
): SweepProgress {
  const { total_records } = answer.pagination;
  const still = sweep.total === 'not known yet' || sweep.total === total_records;
  const total = still ? total_records : 'moved';
  const distinct = sweep.distinct + fresh;
  if (next) return { ...sweep, total, distinct, position: next };
  // A list that is suddenly empty proves nothing: such an answer is more likely than the fact. It
  // may be so in the middle of a sweep, too: then the last page is the empty one.
  const isEmpty = distinct === 0 || answer.data.length === 0;
  const isExact = total === distinct;
  const isDoubtful = !settled || sweep.interrupted;
  const proof = isEmpty ? 'nothing' : isDoubtful ? 'doubtful' : isExact ? 'exact' : 'complete';
  return {
    ...sweep,
    phase: 'removing',
    position: null,
    total,
    distinct,
    proof,
    proofBefore: sweep.proof,
  };
}

const AGREEING: ReadonlySet<Proof> = new Set<Proof>(['complete', 'exact']);

/**
 * The number of the sweep since which a key must have been seen, or it is gone as far as sweeps can
 * tell; undefined when they can't.
 *
 * Where a record can be asked for by its key, one sweep is enough to ask. Elsewhere a key
 * has to be absent from two complete sweeps in a row, one of them exact: the keys that a sweep can
 * miss in a list that moves are few, and another sweep's are others.
 */
export function seenSince(sweep: SweepProgress, canBeAsked: boolean): number | undefined {
  const { phase, number, proof, proofBefore } = sweep;
  if (phase !== 'removing' || proof === 'nothing') return undefined;
  if (canBeAsked) return number;
  const proofs = [proof, proofBefore];
  const isProven = proofs.includes('exact') && proofs.every((each) => AGREEING.has(each));
  return isProven ? number - 1 : undefined;
}
