// The stored progress of a list's sweeps, the transitions between its states, and what a sweep proves about missing keys.

import { recordsOf } from '../decode/response.ts';
import type { Position } from './anchors.ts';
import type { HeldBack, LimitVerdict } from './deletion-limit.ts';
import type { ScanPage } from './pages.ts';
import { countsAfter, NO_COUNTS, sampleSize } from './scan-counts.ts';
import type { ScanCounts } from './scan-counts.ts';
import { keyOrderAfter, mayBeCut, provenSince, addProvingScan } from './reading-proofs.ts';
import type { KeyOrder, ProvingScan } from './reading-proofs.ts';

/**
 * How strongly a sweep proves that keys it did not read are absent from the list, from weakest to strongest:
 *
 * - `nothing`: the list was not read to its end, or was empty;
 * - `doubtful`: read to its end, but the sweep was interrupted, or some pages did not join;
 * - `complete`: the whole list was read;
 * - `anchored`: every record that did not move within the list was read, because all pages joined and the list kept its order; a record
 *   that moved is read by polls, or the list is sorted by key and records cannot move;
 * - `exact`: the number of distinct keys equals a `total_records` that did not change during the sweep.
 */
export type Proof = 'nothing' | 'doubtful' | 'complete' | 'anchored' | 'exact';

/**
 * Progress of the sweeps of a list. A sweep is one full scan; sweeps follow each other and are numbered from 1. Plain JSON, stored
 * with the marks that hold, for each key, the number of the sweep that saw it last.
 */
export interface SweepProgress {
  /** Number of the newest sweep; 0 before the first. */
  readonly number: number;
  /** When the first page of the newest sweep was requested, in epoch ms on the local clock. */
  readonly beganAt: number;
  readonly phase: 'reading' | 'removing' | 'done';
  /** Position in the list at which the running sweep resumes; null at its beginning, and when no sweep is running. */
  readonly position: Position | null;
  /** `total_records` while all pages of the sweep agree on it; `moved` once a page has a different total, or none. */
  readonly total: number | 'not known yet' | 'moved';
  /** Number of distinct keys read in the newest sweep. */
  readonly distinct: number;
  /** Other counts of the newest sweep, such as rejected and undecided records; null before the first sweep. */
  readonly counts: ScanCounts | null;
  /** How the records of the newest sweep are sorted by key. */
  readonly keyOrder: KeyOrder;
  /** Proof of the newest sweep that was read to its end. */
  readonly proof: Proof;
  /** Earlier sweeps that can serve as the first of the two that prove a key absent, oldest first. */
  readonly proving: readonly ProvingScan[];
  /** The newest sweep, if it can be part of a proof that keys are absent; null if not, or while it is still running. */
  readonly newest: ProvingScan | null;
  /** Whether `newest` counts only once polls have read all changes made during the sweep. */
  readonly awaitsPolls: boolean;
  /** Whether unchanged records were ever seen in a different order than before. Anchors then prove nothing. */
  readonly isUnordered: boolean;
  /** Highest `total_records` in the newest sweep. */
  readonly top: number;
  /** Highest `total_records` in any sweep. */
  readonly peak: number;
  /**
   * Total at which the API seems to cap the list, and when a full scan first showed it (epoch ms on the local clock); null if the list
   * seems to be served completely.
   */
  readonly cut: { readonly total: number; readonly since: number } | null;
  /** Number of the newest sweep whose missing keys were checked against the deletion limit. */
  readonly judged: number;
  /** Ranges of missing keys whose deletions are held back, because too many keys went missing at once. */
  readonly heldBack: readonly HeldBack[];
  /** Last missing key whose record was requested, in key order, after which single requests resume; null before the first request. */
  readonly askedUpTo: string | null;
  /** When the records of all missing keys had been requested once, in epoch ms on the local clock; null before that. */
  readonly askedAt: number | null;
  /** Whether the newest sweep was interrupted: part of it was read by another process, or by this one before a failure. */
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

export interface ResumeSweepOptions {
  /** Whether single records can be requested by their key. */
  readonly canRequestRecords: boolean;
  /** Current time, in epoch ms on the local clock of the process that resumes the sweep. */
  readonly now: number;
  /** Whether other processes may have read the list since the progress was stored; which keys they saw is unknown. */
  readonly byOthers: boolean;
}

/**
 * Returns the progress with which a process resumes the sweeps of a list after a restart or a claim. A record that was absent may have come
 * back in the meantime: a resumed sweep is marked as interrupted, which weakens its proof, and deletions start over with the next sweep,
 * unless single records can be requested.
 *
 * Stored times are moved forward by the time since the progress was stored: it does not count towards a proof, so a local clock that was
 * changed in the meantime does no harm.
 */
export function resumedSweep(
  sweep: SweepProgress,
  { canRequestRecords, now, byOthers }: ResumeSweepOptions,
): SweepProgress {
  const { phase, proving, newest, cut, askedAt, keptAt } = sweep;
  const away = now - keptAt;
  const later = (each: ProvingScan) => ({
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
  return phase === 'done' || canRequestRecords ? over : { ...over, phase: 'done' };
}

/** Returns the progress at the start of the sweep that follows `last`. */
export function nextSweep(last: SweepProgress, beganAt: number): SweepProgress {
  const { number, proof, proving, isUnordered, peak, cut, judged, heldBack } = last;
  return {
    ...NO_SWEEP,
    ...{ number: number + 1, beganAt, phase: 'reading', counts: NO_COUNTS },
    ...{ proof, proving, isUnordered, peak, cut, judged, heldBack },
  };
}

/** Facts about a page of a sweep that are not part of its response. */
export interface SweptPage {
  /** Number of keys on the page that this sweep had not read before. */
  readonly fresh: number;
  /** Number of keys, new to this sweep, whose records the setting `START_FROM` excludes. */
  readonly leftOut: number;
  /** Indexes of rejected records on the page. */
  readonly rejectedAt: readonly number[];
  /**
   * Whether the sweep adds up so far. False once pages did not join after the last repetition, the list is capped, or a record is
   * unreadable.
   */
  readonly isConsistent: boolean;
  /** Whether the list has kept its order: false once unchanged records were seen in a different order than before. */
  readonly ordered: boolean;
  /** Whether polls also read this list's changes. */
  readonly isPolled: boolean;
  /** Number of records requested per page. */
  readonly pageSize: number;
  /** Current time, in epoch ms on the local clock. */
  readonly now: number;
  /** How long a record has to stay absent before its deletion is proven, in ms. */
  readonly proofMs: number;
}

/** Returns the progress of a sweep after one more page. */
export function sweepAfter(
  sweep: SweepProgress,
  { answer, offset, next }: ScanPage,
  page: SweptPage,
): SweepProgress {
  const { fresh, leftOut, rejectedAt, isConsistent, ordered, pageSize, now } = page;
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
      countsAfter(sweep.counts, { offset, length, at, rejectedAt, leftOut, isConsistent }),
    keyOrder: keyOrderAfter(sweep.keyOrder, records),
    top: Math.max(sweep.top, total_records ?? 0),
    peak: Math.max(sweep.peak, total_records ?? 0),
    isUnordered,
    // Anchors rely on the order of the list, so earlier sweeps that were proven by anchors no longer count.
    ...(isUnordered && !sweep.isUnordered && { proving: [] }),
  };
  if (next) return { ...read, position: next };
  return sweepEnded({ ...read, phase: 'removing', position: null }, page, {
    isAtEnd: offset + length === total_records,
    isEmpty: length === 0,
    fitsOnePage: offset === 0 && length < pageSize,
  });
}

/**
 * Returns the progress after the last page of a sweep, including how strongly the sweep proves that keys are absent.
 *
 * @param last Facts about the last page: `isAtEnd`: it ends at `total_records`; `isEmpty`: it has no record; `fitsOnePage`: it is also the
 *   first page, and has fewer records than were requested.
 */
function sweepEnded(
  sweep: SweepProgress,
  { isConsistent, isPolled, now, proofMs }: SweptPage,
  last: { readonly isAtEnd: boolean; readonly isEmpty: boolean; readonly fitsOnePage: boolean },
): SweepProgress {
  const { number, beganAt, distinct, top, peak, heldBack } = sweep;
  // An empty list proves nothing: a faulty response is more likely than the deletion of all records. The list may also become empty
  // during a sweep; then the last page is the empty one.
  if (distinct === 0 || last.isEmpty) return { ...sweep, proof: 'nothing', proving: [] };
  if (!isConsistent || sweep.interrupted) return { ...sweep, proof: 'doubtful' };
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
  const newest: ProvingScan = { number, beganAt, at: now };
  return proof === 'anchored' && isPolled
    ? { ...read, newest, awaitsPolls: true }
    : proven(read, newest, proofMs);
}

/**
 * Whether a sweep whose total changed is anchored: it has all records that did not move within the list, and none that moved is missed,
 * because polls read it or because the list is sorted by key, so that records never move. Rejected records rule it out, as each may be the
 * record of a missing key.
 */
function isAnchored(
  { isUnordered, keyOrder, counts }: SweepProgress,
  isAtEnd: boolean,
  isPolled: boolean,
): boolean {
  if (isUnordered || !isAtEnd || counts?.rejected !== 0) return false;
  return isPolled || keyOrder === 'asc' || keyOrder === 'desc';
}

/** Returns the progress once the sweep `newest` counts as part of a proof that keys are absent from the list. */
function proven(sweep: SweepProgress, newest: ProvingScan, proofMs: number): SweepProgress {
  const proving = addProvingScan(sweep.proving, newest, proofMs);
  return { ...sweep, newest, awaitsPolls: false, proving };
}

/** Returns the progress once polls that started after an anchored sweep have read all changes made during that sweep. */
export function pollsCompleted(sweep: SweepProgress, now: number, proofMs: number): SweepProgress {
  const { newest } = sweep;
  return newest ? proven(sweep, { ...newest, at: now }, proofMs) : sweep;
}

/** Returns the progress once the missing keys of the newest sweep were checked against the deletion limit. */
export function limitJudged(
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

/** Returns the sweeps' progress after the last page of an initial snapshot. */
export function snapshotDone(sweep: SweepProgress, now: number): SweepProgress {
  // `beganAt`: the first sweep is due one interval from now. The initial snapshot itself is not part of any proof.
  return { ...sweep, phase: 'done', beganAt: now, proving: [] };
}

const AGREEING: ReadonlySet<Proof> = new Set<Proof>(['complete', 'anchored', 'exact']);

/**
 * Whether keys that the newest sweep has not seen may belong to deleted records. If single records can be requested, any sweep with a proof
 * other than `nothing` is enough to request the records of the missing keys.
 */
export function showsAbsence({ phase, proof }: SweepProgress, canBeAsked: boolean): boolean {
  return phase === 'removing' && (canBeAsked ? proof !== 'nothing' : AGREEING.has(proof));
}

/**
 * Whether the newest sweep has read as many keys as there are stored images (`images`), so that the search for missing keys can be skipped.
 * A record that was deleted after it was read may hide a missing one until the next sweep.
 */
export function hasReadAll({ distinct, counts }: SweepProgress, images: number): boolean {
  if (!counts || distinct !== images) return false;
  const { leftOut, unpublished, undecided } = counts; // such keys may have no image
  return leftOut + sampleSize(unpublished) + sampleSize(undecided) === 0;
}

/**
 * For lists whose records cannot be requested singly: the number of a sweep such that every key not seen since that sweep is proven to be
 * deleted. Undefined while nothing is proven.
 *
 * A key has to be absent from one proving sweep, from another that began at least `proofMs` later, and from each sweep in between. A server
 * whose index is wrong for less than that time affects at most one of the two.
 */
export function deletedUnlessSeenSince(sweep: SweepProgress, proofMs: number): number | undefined {
  const { phase, proving, newest, awaitsPolls } = sweep;
  if (phase !== 'removing' || newest === null || awaitsPolls) return undefined;
  return provenSince(proving, newest, proofMs);
}

/** Returns the time until the records of missing keys, already requested once, may be requested for the second time, in ms. */
export function proofRemainingMs({ askedAt }: SweepProgress, now: number, proofMs: number): number {
  return askedAt === null ? 0 : Math.min(proofMs, Math.max(0, askedAt + proofMs - now));
}
