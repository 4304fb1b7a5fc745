import { recordsOf } from '../decode/answer.ts';
import type { Position } from './anchors.ts';
import type { HeldBack, LimitVerdict } from './deletion-limit.ts';
import type { ScanPage } from './pages.ts';
import { countsAfter, NOTHING_COUNTED, sizeOf } from './reading-counts.ts';
import type { ReadingCounts } from './reading-counts.ts';
import { keyOrderAfter, mayBeCut, provenSince, provingWith } from './reading-proofs.ts';
import type { KeyOrder, ProvingReading } from './reading-proofs.ts';

/**
 * Degree of proof that a sweep has reached, from weakest to strongest:
 *
 * - `nothing`: the list was not read to its end, or was empty;
 * - `doubtful`: read to its end, but in several goes or with pages that never joined;
 * - `complete`: the whole list was read;
 * - `anchored`: each record that stood still was read, as pages joined each other and the list kept its order; a record that moved is
 *   found by polls, or cannot move;
 * - `exact`: the number of distinct keys equals a `total_records` that did not change during the sweep.
 */
export type Proof = 'nothing' | 'doubtful' | 'complete' | 'anchored' | 'exact';

/**
 * Progress of the sweeps of a list. A sweep is one complete reading; sweeps follow each other and are numbered from 1. Plain JSON, stored
 * beside the marks that say which sweep saw a key last. Fields that an older version has not written get the values of {@link NO_SWEEP}.
 */
export interface SweepProgress {
  /** Number of the newest sweep; 0 before the first. */
  readonly number: number;
  /** When the first page of the newest sweep was requested, in epoch ms on the local clock. */
  readonly beganAt: number;
  readonly phase: 'reading' | 'removing' | 'done';
  /** Where the reading goes on. */
  readonly position: Position | null;
  /** `total_records` while all pages of the sweep agree on it; `moved` once a page has another total, or none. */
  readonly total: number | 'not known yet' | 'moved';
  /** Distinct keys read in the newest sweep. */
  readonly distinct: number;
  /** Counts of other records in the newest sweep; null if an older version has read a part of it. */
  readonly counts: ReadingCounts | null;
  readonly keyOrder: KeyOrder;
  /** Proof of the newest sweep that was read to its end. */
  readonly proof: Proof;
  /** Readings that the proof of an absence may begin with, the oldest first. */
  readonly proving: readonly ProvingReading[];
  /** The newest sweep, if it can be part of a proof of absence; null if not, or if it is not read to its end. */
  readonly newest: ProvingReading | null;
  /** Whether `newest` counts only once polls have read all changes made during the sweep. */
  readonly awaitsPolls: boolean;
  /** Whether unchanged records have ever changed their order. Anchors then prove nothing. */
  readonly isUnordered: boolean;
  /** Highest `total_records` in the newest sweep. */
  readonly top: number;
  /** Highest `total_records` in any sweep. */
  readonly peak: number;
  /**
   * Total at which the list seems to be capped, and when a complete reading first had it (epoch ms on the local clock); null if the list
   * seems whole.
   */
  readonly cut: { readonly total: number; readonly since: number } | null;
  /** Number of the newest sweep whose missing keys were checked against the deletion limit. */
  readonly judged: number;
  /** Missing keys that must not be deleted, because too many vanished at once. */
  readonly heldBack: readonly HeldBack[];
  /** Last key of the missing ones that were requested by number, in key order; null before the first. */
  readonly askedUpTo: string | null;
  /** When all missing keys had been requested once, in epoch ms on the local clock; null before. */
  readonly askedAt: number | null;
  /** Whether the newest sweep was interrupted: a part was read by another process, or by this one before a failure. */
  readonly interrupted: boolean;
  /** When this progress was stored, in epoch ms on the local clock. */
  readonly keptAt: number;
}

/** Progress of a list that no sweep has read. */
export const NO_SWEEP: SweepProgress = {
  number: 0,
  beganAt: 0,
  phase: 'done',
  position: null,
  total: 'not known yet',
  distinct: 0,
  counts: null,
  keyOrder: null,
  proof: 'nothing',
  proving: [],
  newest: null,
  awaitsPolls: false,
  isUnordered: false,
  top: 0,
  peak: 0,
  cut: null,
  judged: 0,
  heldBack: [],
  askedUpTo: null,
  askedAt: null,
  interrupted: false,
  keptAt: 0,
};

export interface TakeOver {
  readonly canBeAsked: boolean;
  /** Epoch ms on the clock of the process that takes over. */
  readonly now: number;
  /** Whether other processes may have read the list since the progress was stored. Which keys they saw is unknown. */
  readonly byOthers: boolean;
}

/**
 * Progress for a process that takes over a list. A record that was absent may have come back in the meantime. So a sweep that is resumed
 * proves nothing, and removals start over with the next sweep, unless records can be requested by number.
 *
 * The time between the two processes does not count towards a proof, so a clock that was changed in the meantime does no harm.
 */
export function takenOver(
  sweep: SweepProgress,
  { canBeAsked, now, byOthers }: TakeOver,
): SweepProgress {
  const { phase, proving, newest, cut, askedAt, keptAt } = sweep;
  const away = now - keptAt;
  const later = (each: ProvingReading) => ({
    ...each,
    beganAt: each.beganAt + away,
    at: each.at + away,
  });
  const over: SweepProgress = {
    ...sweep,
    proving: proving.map(later),
    newest: newest && later(newest),
    cut: cut && { ...cut, since: cut.since + away },
    askedAt: askedAt === null ? null : askedAt + away,
    ...(byOthers && { proving: [], newest: null, askedUpTo: null, askedAt: null }),
    keptAt: now,
  };
  if (phase === 'reading') return { ...over, interrupted: true };
  return phase === 'done' || canBeAsked ? over : { ...over, phase: 'done' };
}

export function nextSweep(last: SweepProgress, beganAt: number): SweepProgress {
  const { number, proof, proving, isUnordered, peak, cut, judged, heldBack } = last;
  return {
    ...NO_SWEEP,
    ...{ number: number + 1, beganAt, phase: 'reading', counts: NOTHING_COUNTED },
    ...{ proof, proving, isUnordered, peak, cut, judged, heldBack },
  };
}

/** Findings about a page that are not part of its answer. */
export interface SweptPage {
  /** Number of keys that this sweep had not read before. */
  readonly fresh: number;
  /** Number of those keys that belong to records left out by a setting. */
  readonly leftOut: number;
  /** Indexes of records on the page without a readable key. */
  readonly rejectedAt: readonly number[];
  /** False if pages did not join and re-reading them was given up. */
  readonly settled: boolean;
  /** False once unchanged records have changed their order. */
  readonly ordered: boolean;
  /** Whether polls also read this list's changes. */
  readonly isPolled: boolean;
  /** Requested records per page. */
  readonly pageSize: number;
  /** Epoch ms on the local clock. */
  readonly now: number;
  /** How long a record has to stay absent before its deletion is proven, in ms. */
  readonly proofMs: number;
}

/** Progress after one more page. */
export function sweepAfter(
  sweep: SweepProgress,
  { answer, offset, next }: ScanPage,
  page: SweptPage,
): SweepProgress {
  const { fresh, leftOut, rejectedAt, settled, ordered, pageSize, now } = page;
  const { total_records } = answer.pagination;
  const still = sweep.total === 'not known yet' || sweep.total === total_records;
  const records = recordsOf(answer);
  const { length } = records;
  const { serverTime } = answer;
  const at = { first: serverTime ?? sweep.beganAt, later: serverTime ?? now };
  const isUnordered = sweep.isUnordered || !ordered;
  const read: SweepProgress = {
    ...sweep,
    total: (still ? total_records : undefined) ?? 'moved',
    distinct: sweep.distinct + fresh,
    counts:
      sweep.counts &&
      countsAfter(sweep.counts, { offset, length, at, rejectedAt, leftOut, settled }),
    keyOrder: keyOrderAfter(sweep.keyOrder, records),
    top: Math.max(sweep.top, total_records ?? 0),
    peak: Math.max(sweep.peak, total_records ?? 0),
    isUnordered,
    // Anchors rely on the order of the list: the proofs by anchors so far are void.
    ...(isUnordered && !sweep.isUnordered && { proving: [] }),
  };
  if (next) return { ...read, position: next };
  return readToEnd({ ...read, phase: 'removing', position: null }, page, {
    isAtEnd: offset + length === total_records,
    isEmpty: length === 0,
    fitsOnePage: offset === 0 && length < pageSize,
  });
}

/**
 * Progress after the last page of a sweep, with its proof.
 *
 * @param last Whether the page ends at `total_records`, has no record, and is also the first page, and shorter than requested.
 */
function readToEnd(
  sweep: SweepProgress,
  { settled, isPolled, now, proofMs }: SweptPage,
  last: { readonly isAtEnd: boolean; readonly isEmpty: boolean; readonly fitsOnePage: boolean },
): SweepProgress {
  const { number, beganAt, distinct, top, peak, heldBack } = sweep;
  // An empty list proves nothing: a faulty answer is more likely than a list that lost all its records. The list may also
  // turn empty during a sweep; the last page is then the empty one.
  if (distinct === 0 || last.isEmpty) return { ...sweep, proof: 'nothing', proving: [] };
  if (!settled || sweep.interrupted) return { ...sweep, proof: 'doubtful' };
  const lacksMass = heldBack.some(({ isConfirmed }) => !isConfirmed);
  const isCut = mayBeCut({ top, peak, lacksMass, fitsOnePage: last.fitsOnePage });
  const since = sweep.cut?.total === top ? sweep.cut.since : now;
  const isExact = sweep.total === distinct;
  const proof = isExact
    ? 'exact'
    : isAnchored(sweep, last.isAtEnd, isPolled)
      ? 'anchored'
      : 'complete';
  const read: SweepProgress = { ...sweep, proof, cut: isCut ? { total: top, since } : null };
  if (proof === 'complete' || isCut) return read;
  const newest: ProvingReading = { number, beganAt, at: now };
  return proof === 'anchored' && isPolled
    ? { ...read, newest, awaitsPolls: true }
    : proven(read, newest, proofMs);
}

/**
 * Whether a sweep with a moving total is anchored: it has all records that stood still, and no record that moved is missed, because polls
 * find it or because the list is ordered by a key and records never move. A record without a readable key may be any missing one.
 */
function isAnchored(
  { isUnordered, keyOrder, counts }: SweepProgress,
  isAtEnd: boolean,
  isPolled: boolean,
): boolean {
  if (isUnordered || !isAtEnd || counts?.rejected !== 0) return false;
  return isPolled || keyOrder === 'asc' || keyOrder === 'desc';
}

function proven(sweep: SweepProgress, newest: ProvingReading, proofMs: number): SweepProgress {
  const proving = provingWith(sweep.proving, newest, proofMs);
  return { ...sweep, newest, awaitsPolls: false, proving };
}

/** Progress once polls that began after an anchored sweep have read all changes made during it. */
export function polledAfter(sweep: SweepProgress, now: number, proofMs: number): SweepProgress {
  const { newest } = sweep;
  return newest ? proven(sweep, { ...newest, at: now }, proofMs) : sweep;
}

/** Progress once the missing keys of the sweep were checked against the deletion limit. */
export function judgedSweep(
  sweep: SweepProgress,
  { heldBack, hasRecovered }: LimitVerdict,
): SweepProgress {
  return {
    ...sweep,
    judged: sweep.number,
    heldBack,
    ...(hasRecovered && { proving: [] }),
  };
}

/** Progress after the last page of an initial snapshot. */
export function snapshotDone(sweep: SweepProgress, now: number): SweepProgress {
  // The first sweep is due one interval later. The snapshot itself is not part of any proof.
  return { ...sweep, phase: 'done', beganAt: now, proving: [] };
}

const AGREEING: ReadonlySet<Proof> = new Set<Proof>(['complete', 'anchored', 'exact']);

/**
 * Whether keys that the newest sweep has not seen may be deleted records. If records can be requested by number, any sweep with a
 * proof other than `nothing` is reason enough to request them.
 */
export function showsAbsence({ phase, proof }: SweepProgress, canBeAsked: boolean): boolean {
  return phase === 'removing' && (canBeAsked ? proof !== 'nothing' : AGREEING.has(proof));
}

/**
 * Whether the newest sweep has read the records of all `images` stored images, so that the search for missing keys can be skipped. A
 * record that was deleted after it was read may hide a missing one until the next sweep.
 */
export function hasReadAll({ distinct, counts }: SweepProgress, images: number): boolean {
  if (!counts || distinct !== images) return false;
  const { leftOut, unpublished, undecided } = counts; // these may have none
  return leftOut + sizeOf(unpublished) + sizeOf(undecided) === 0;
}

/**
 * For lists whose records cannot be requested by number: a key not seen since the sweep with this number is deleted. Undefined
 * while nothing is proven.
 *
 * A key has to be absent from one proving reading, from another that began `proofMs` later, and from each reading in between. A server
 * whose index is wrong for less than that time affects at most one of the two.
 */
export function seenSince(sweep: SweepProgress, proofMs: number): number | undefined {
  const { phase, proving, newest, awaitsPolls } = sweep;
  if (phase !== 'removing' || newest === null || awaitsPolls) return undefined;
  return provenSince(proving, newest, proofMs);
}

/** Time until the missing keys, requested once, are requested for the second time, in ms. */
export function proofLeft({ askedAt }: SweepProgress, now: number, proofMs: number): number {
  return askedAt === null ? 0 : Math.min(proofMs, Math.max(0, askedAt + proofMs - now));
}
