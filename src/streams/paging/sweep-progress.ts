// The stored progress of a list's sweeps, its transitions, and what it proves about missing keys.

import type { ReadingRules } from '../../description/levels.ts';
import type { ReadingLevel } from '../../schemas/events/certificate.ts';
import { KeyTally } from '../../schemas/events/key-tally.ts';
import type { TallyText } from '../../schemas/events/key-tally.ts';
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
 * - `nothing`: no sweep has ended yet, or the list was empty or became empty during the sweep;
 * - `doubtful`: the list was read to its end, but the sweep was interrupted or not consistent;
 * - `complete`: the list was read to its end without a sign that records were missed;
 * - `anchored`: as `complete`, and pages overlapped in unchanged records and the list kept its order, so that no record was missed unless
 *   it moved;
 * - `exact`: as `complete`, and the number of distinct keys equals a `total` that did not change during the sweep.
 */
export type Proof = 'nothing' | 'doubtful' | 'complete' | 'anchored' | 'exact';

/**
 * Progress of a list's sweeps (recurring full scans), which are numbered from 1. Plain JSON. For each key, the number of the sweep that
 * last saw the key is stored as well.
 */
export interface SweepProgress {
  /** Number of the newest sweep; 0 before the first. */
  readonly number: number;
  /** When the newest sweep began, in epoch ms on the local clock. */
  readonly beganAt: number;
  readonly phase: 'reading' | 'removing' | 'done';
  /**
   * Position at which the newest sweep goes on reading the list. Null before its first and after its last page, and in an initial snapshot.
   */
  readonly position: Position | null;
  /** The list's `total`, if all pages of the sweep so far report the same. `moved` once a page reports a different total, or none. */
  readonly total: number | 'not known yet' | 'moved';
  /** Number of distinct keys that the newest sweep has read. */
  readonly distinct: number;
  /**
   * Count and digest of the distinct keys that the newest sweep has read. Undefined unless the list's deletions are proven by two sweeps
   * that have read the same keys.
   */
  readonly keys?: TallyText;
  /** Times and counts of the newest sweep (recurring full scan), for its certificate; null before the first sweep. */
  readonly counts: ScanCounts | null;
  readonly keyOrder: KeyOrder;
  /** How strongly the newest sweep whose scan has ended proves that keys it did not read are absent from the list. */
  readonly proof: Proof;
  /** Sweeps that can prove a key absent together with a later sweep, oldest first. */
  readonly proving: readonly ProvingScan[];
  /** The newest sweep, if it has read the list and can prove keys absent together with an earlier sweep from {@link proving}; else null. */
  readonly newest: ProvingScan | null;
  /** Whether the sweep `newest` proves nothing until polls have read all changes made during it. */
  readonly awaitsPolls: boolean;
  /** Whether a sweep has read unchanged records twice, in different orders. If so, anchors (unchanged records on a page) prove nothing. */
  readonly isUnordered: boolean;
  readonly top: number;
  readonly peak: number;
  /**
   * Total at which the API seems to cap the list, and when a full scan first showed that (epoch ms on the local clock). Null if the list
   * does not seem capped.
   */
  readonly cut: { readonly total: number; readonly since: number } | null;
  /** Number of the newest sweep whose missing keys were checked against the deletion limit. */
  readonly judged: number;
  /**
   * Ranges of sweeps in which too many keys went missing. The deletion of a missing key that was last seen in such a range is held back,
   * unless the range `isConfirmed`.
   */
  readonly heldBack: readonly HeldBack[];
  /**
   * Last missing key whose record was requested in the newest sweep's first round of requests, which goes through the missing keys in key
   * order. A resumed round continues after this key. Null before the first request.
   */
  readonly askedUpTo: string | null;
  /**
   * Time at which the newest sweep finished its first round of requests for the records of the missing keys, in epoch ms on the local
   * clock; null before that.
   */
  readonly askedAt: number | null;
  /** Whether the task of the list was restarted, or claimed by another process, while the newest sweep was reading the list. */
  readonly interrupted: boolean;
  /** When this progress of the list's sweeps was stored, in epoch ms on the local clock. */
  readonly keptAt: number;
}

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
  /** Current time, in epoch ms on the local clock. */
  readonly now: number;
  /** Whether other processes may have read the list since the progress of its sweeps was stored. */
  readonly byOthers: boolean;
}

/**
 * Returns the progress with which a process resumes the sweeps of a list after a restart, or when it becomes the owner of the list:
 *
 * - A sweep that was still reading the list goes on, and is marked as interrupted, so that it proves less.
 * - A sweep that was removing missing keys goes on if single records can be requested. Otherwise it ends.
 * - If other processes may have read the list in the meantime, earlier sweeps and requests for single records are not used as evidence.
 *
 * The stored times used in proofs are moved forward by the time since the progress was stored, so that this time does not count.
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

/** Returns the progress at the start of the sweep after `last`. */
export function nextSweep(last: SweepProgress, beganAt: number): SweepProgress {
  const { number, proof, proving, isUnordered, peak, cut, judged, heldBack } = last;
  return {
    ...NO_SWEEP,
    ...{ number: number + 1, beganAt, phase: 'reading', counts: NO_COUNTS },
    ...{ proof, proving, isUnordered, peak, cut, judged, heldBack },
  };
}

export interface SweptPage {
  /** Number of keys on the page that this sweep had not read before. */
  readonly fresh: number;
  /**
   * The keys on the page that this sweep had not read before. Needed only if two full scans that read the same keys can prove deletions
   * (`rules.isAgreed`).
   */
  readonly freshKeys?: readonly string[];
  /**
   * Number of keys counted in `fresh` whose records are not published, because the setting `START_FROM` excludes them or the list shows
   * them as deleted.
   */
  readonly leftOut: number;
  readonly rejectedAt: readonly number[];
  /**
   * False once the sweep may have missed records: its scan had a trouble in `INCONSISTENT`, a record is unreadable, or a response may be
   * older than the sweep.
   */
  readonly isConsistent: boolean;
  /** False once unchanged records have been read in a different order than earlier in the sweep. */
  readonly ordered: boolean;
  readonly isPolled: boolean;
  readonly rules: ReadingRules;
  readonly pageSize: number;
  readonly now: number;
  /** How long a key has to stay missing before its record counts as deleted, in ms. */
  readonly proofMs: number;
}

/** Returns the progress of a sweep after it has read one more page. */
export function sweepAfter(
  sweep: SweepProgress,
  { answer, offset, next }: ScanPage,
  page: SweptPage,
): SweepProgress {
  const { fresh, leftOut, rejectedAt, isConsistent, ordered, rules, pageSize, now } = page;
  const { total } = answer;
  const still = sweep.total === 'not known yet' || sweep.total === total;
  const records = recordsOf(answer);
  const { length } = records;
  const { serverTime } = answer;
  const at = { first: serverTime ?? sweep.beganAt, later: serverTime ?? now };
  const isUnordered = sweep.isUnordered || !ordered;
  const read: SweepProgress = {
    ...sweep,
    total: (still ? total : undefined) ?? 'moved',
    distinct: sweep.distinct + fresh,
    ...(rules.isAgreed && { keys: keysWith(sweep.keys, page.freshKeys ?? []) }),
    counts:
      sweep.counts &&
      countsAfter(sweep.counts, { offset, length, at, rejectedAt, leftOut, isConsistent }),
    keyOrder: keyOrderAfter(sweep.keyOrder, records),
    top: Math.max(sweep.top, total ?? 0),
    peak: Math.max(sweep.peak, total ?? 0),
    isUnordered,
    // Anchors rely on the order of the list, so earlier sweeps that were proven by anchors no longer count.
    ...(isUnordered && !sweep.isUnordered && { proving: [] }),
  };
  if (next) return { ...read, position: next };
  return sweepEnded({ ...read, phase: 'removing', position: null }, page, {
    isAtEnd: !rules.endsAtTotal || offset + length === total,
    isEmpty: length === 0,
    // A request for the whole list states no page size, so a server may cap it at any number.
    fitsOnePage: !rules.isWhole && offset === 0 && length < pageSize,
  });
}

/** Returns count and digest of a set of keys (`before`) after `keys` have been added to it. */
function keysWith(before: TallyText | undefined, keys: readonly string[]): TallyText {
  const tally = before ? KeyTally.of(before) : new KeyTally();
  for (const key of keys) tally.add(key, 0);
  return tally.toJSON();
}

/**
 * Returns the progress of a sweep after its last page, with its `proof`: how well the sweep shows that records missing from it were
 * deleted.
 *
 * @param last Facts about the last page. `isAtEnd`: the page ends at the list's total, or the total does not mark the list's end.
 * `isEmpty`: the page has no records. `fitsOnePage`: the page is the only one, and has fewer records than requested.
 */
function sweepEnded(
  sweep: SweepProgress,
  { isConsistent, isPolled, rules, now, proofMs }: SweptPage,
  last: { readonly isAtEnd: boolean; readonly isEmpty: boolean; readonly fitsOnePage: boolean },
): SweepProgress {
  const { number, beganAt, distinct, top, peak, heldBack } = sweep;
  // An empty list proves nothing: a faulty response is more likely than the deletion of all records. The list may also become empty
  // during a sweep; then the last page is the empty one.
  if (distinct === 0 || (last.isEmpty && !rules.mayEndEmpty)) {
    return { ...sweep, proof: 'nothing', proving: [] };
  }
  // The counts remember an earlier page that was not consistent, also when the sweep was resumed after the API had refused a page.
  const isSettled = sweep.counts?.settled ?? isConsistent;
  if (!isSettled || sweep.interrupted) return { ...sweep, proof: 'doubtful' };
  const lacksMass = heldBack.some(({ isConfirmed }) => !isConfirmed);
  // Without a total, the list may be capped at the number of records that it shows.
  const counted = rules.endsAtTotal ? 0 : distinct;
  const shown = { top: Math.max(top, counted), peak: Math.max(peak, counted) };
  const isCut = mayBeCut({ ...shown, lacksMass, fitsOnePage: last.fitsOnePage });
  const since = sweep.cut?.total === shown.top ? sweep.cut.since : now;
  const isExact = sweep.total === distinct;
  const proof = isExact
    ? 'exact'
    : rules.overlaps && isAnchored(sweep, last.isAtEnd, isPolled)
      ? 'anchored'
      : 'complete';
  const cut = isCut ? { total: shown.top, since } : null;
  const read: SweepProgress = { ...sweep, peak: shown.peak, proof, cut };
  const byAgreement = proof === 'complete' && !rules.isWhole;
  // If other pages show the end, a faulty response may have cut the scan short.
  const mayAgree = rules.isAgreed && (!last.isEmpty || rules.endsEmpty);
  // A rejected record may be the record of any missing key.
  const mayProve =
    proof !== 'complete' || ((rules.isWhole || mayAgree) && sweep.counts?.rejected === 0);
  if (!mayProve || isCut) return read;
  const newest: ProvingScan = {
    ...{ number, beganAt, at: now },
    ...(byAgreement && sweep.keys && { keys: sweep.keys }),
  };
  return (proof === 'anchored' || byAgreement) && isPolled
    ? { ...read, newest, awaitsPolls: true }
    : proven(read, newest, proofMs);
}

/**
 * Whether a sweep with overlapping pages has the proof `anchored` (evidence that it missed no record). It requires:
 *
 * - The list kept its order and was read to its end.
 * - No record was rejected, because a rejected one may be the record of a missing key.
 * - The list is polled, so that polls read moved records, or it is sorted by key, so that records cannot move.
 */
function isAnchored(
  { isUnordered, keyOrder, counts }: SweepProgress,
  isAtEnd: boolean,
  isPolled: boolean,
): boolean {
  if (isUnordered || !isAtEnd || counts?.rejected !== 0) return false;
  return isPolled || keyOrder === 'asc' || keyOrder === 'desc';
}

/**
 * Returns the sweep's progress after the full scan `newest`, which can prove deletions. Also updates the list of scans with which later
 * ones can be combined: see {@link addProvingScan}.
 */
function proven(sweep: SweepProgress, newest: ProvingScan, proofMs: number): SweepProgress {
  const proving = addProvingScan(sweep.proving, newest, proofMs);
  return { ...sweep, newest, awaitsPolls: false, proving };
}

/**
 * Returns the level of a full scan: the strongest evidence that it read the whole list. Undefined if its proof is `nothing` or `doubtful`.
 */
export function levelOf(
  { proof, newest, proving, counts }: SweepProgress,
  rules: ReadingRules,
  proofMs: number,
): ReadingLevel | undefined {
  if (proof === 'nothing' || proof === 'doubtful') return undefined;
  if (proof === 'exact') return 'counted';
  if (proof === 'anchored') return 'anchored';
  if (rules.isWhole && counts?.rejected === 0) return 'whole';
  const isAgreed = newest !== null && provenSince(proving, newest, proofMs) !== undefined;
  return rules.isAgreed && isAgreed ? 'agreed' : 'read';
}

/**
 * Returns the sweep's progress once polls have read all changes made during the newest sweep, at the time `now` (epoch ms). The sweep can
 * from then on prove keys absent, together with another sweep at least `proofMs` apart.
 */
export function pollsCompleted(sweep: SweepProgress, now: number, proofMs: number): SweepProgress {
  const { newest } = sweep;
  return newest ? proven(sweep, { ...newest, at: now }, proofMs) : sweep;
}

/**
 * Returns the sweep's progress after its missing keys were compared with the deletion limit. If keys came back (`hasRecovered`), earlier
 * sweeps no longer count as proof of deletions.
 */
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

export function snapshotDone(sweep: SweepProgress, now: number): SweepProgress {
  // `beganAt`: the first sweep is due one interval from now. The initial snapshot itself is not part of any proof.
  return { ...sweep, phase: 'done', beganAt: now, proving: [] };
}

/**
 * Whether the newest sweep has read the list to its end and proves enough to act on missing keys: any proof except `nothing` if single
 * records can be requested (`canBeAsked`), otherwise at least `complete`.
 */
export function showsAbsence({ phase, proof }: SweepProgress, canBeAsked: boolean): boolean {
  if (phase !== 'removing' || proof === 'nothing') return false;
  return canBeAsked || proof !== 'doubtful';
}

/**
 * Whether presumably no key is missing: the newest sweep has read as many keys as there are `images` (published records), none of them
 * unpublished.
 */
export function hasReadAll({ distinct, counts }: SweepProgress, images: number): boolean {
  // If a record was deleted after the sweep read it, the numbers may agree although a key is missing. The next sweep finds that key.
  if (!counts || distinct !== images) return false;
  const { leftOut, unpublished, undecided } = counts; // such keys may have no image
  return leftOut + sampleSize(unpublished) + sampleSize(undecided) === 0;
}

/**
 * Returns the number of the earlier of two sweeps that together prove deletions: a missing key counts as deleted if no read has shown it
 * since that sweep began. Undefined without two such sweeps. Only for lists whose records cannot be requested singly.
 *
 * The two sweeps are at least `proofMs` apart. So an index of the server that is wrong for less than `proofMs` affects at most one of them.
 */
export function deletedUnlessSeenSince(sweep: SweepProgress, proofMs: number): number | undefined {
  const { phase, proving, newest, awaitsPolls } = sweep;
  if (phase !== 'removing' || newest === null || awaitsPolls) return undefined;
  return provenSince(proving, newest, proofMs);
}

/**
 * Remaining time, in ms, until the records of the missing keys may be requested again: `proofMs` after the first round of requests ended. 0
 * if that round has not ended.
 */
export function proofRemainingMs({ askedAt }: SweepProgress, now: number, proofMs: number): number {
  return askedAt === null ? 0 : Math.min(proofMs, Math.max(0, askedAt + proofMs - now));
}
