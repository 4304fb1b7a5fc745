import type { Position } from './anchors.ts';
import { provenSince, provingWith } from './absence-proof.ts';
import type { ProvingReading } from './absence-proof.ts';
import type { HeldBack } from './deletion-limit.ts';
import { keyOrderAfter } from './key-order.ts';
import type { KeyOrder } from './key-order.ts';
import type { ScanPage } from './pages.ts';
import { recordsOf } from '../decode/answer.ts';
import { countsAfter, NOTHING_COUNTED, sizeOf } from './reading-counts.ts';
import type { ReadingCounts } from './reading-counts.ts';
import { mayBeCut } from './total-cap.ts';

/**
 * Degree of proof that a sweep has reached. `complete`: the whole list was read, and it was not empty. `anchored`: each record that stood still was read, as
 * pages joined each other and the list kept its order, and a record that moved would have been met otherwise. `exact`: with as many
 * distinct keys as a `total_records` that held still. `doubtful`: it was read to its end, but did not add up, however often it was
 * read, or not at one go. `nothing`: none of it.
 */
export type Proof = 'nothing' | 'doubtful' | 'complete' | 'anchored' | 'exact';

/**
 * How far the sweeps of a list have come: complete readings, one after the other, each with the next number. Plain JSON: it is kept
 * beside the marks that tell which sweep saw a key last. Fields that an older version has not written begin anew.
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
  readonly keyOrder: KeyOrder;
  /** Of the newest sweep that was read to its end. */
  readonly proof: Proof;
  /** Readings that the proof of an absence may begin with, the oldest first. */
  readonly proving: readonly ProvingReading[];
  /** The newest sweep as a reading that proves something; null if it proves nothing, or is not read to its end. */
  readonly newest: ProvingReading | null;
  /** Whether polls have yet to look at all that changed during it, before it proves something. */
  readonly awaitsPolls: boolean;
  /** Whether unchanged records have ever changed places: then anchors prove nothing. */
  readonly isUnordered: boolean;
  /** The highest total that its pages have told. */
  readonly top: number;
  /** The highest total that pages of any sweep have told. */
  readonly peak: number;
  /** The total at which the list may be cut off, and since when complete readings have shown it, ms on the local clock; null if it is whole. */
  readonly cut: { readonly total: number; readonly since: number } | null;
  /** The newest sweep whose missing keys were held against the limit. */
  readonly judged: number;
  /** Keys that are missing and must not be deleted, as too many of them vanished at once. */
  readonly heldBack: readonly HeldBack[];
  /** Up to which key the missing ones have been asked for once; null before the first. */
  readonly askedUpTo: string | null;
  /** When all of them had been, ms on the local clock; null before. */
  readonly askedAt: number | null;
  /** Whether another process read a part of it, or this one before a failure. */
  readonly interrupted: boolean;
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

/** The next sweep, whose first page was asked for at a time. */
export function nextSweep(last: SweepProgress, beganAt: number): SweepProgress {
  const { number, proof, proving, isUnordered, peak, cut, judged, heldBack } = last;
  return {
    ...NO_SWEEP,
    ...{ number: number + 1, beganAt, phase: 'reading', counts: NOTHING_COUNTED },
    ...{ proof, proving, isUnordered, peak, cut, judged, heldBack },
  };
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
  /** False once unchanged records have changed places. */
  readonly ordered: boolean;
  /** Whether polls read what has changed, too. */
  readonly isPolled: boolean;
  /** Records a page that are asked for. */
  readonly pageSize: number;
  /** ms on the local clock. */
  readonly now: number;
  /** How long what is absent has to stay so, ms. */
  readonly proofMs: number;
}

/** The sweep after one more page. */
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
  return readToEnd(
    { ...read, phase: 'removing', position: null },
    {
      ...page,
      isAtEnd: offset + length === total_records,
      isEmpty: length === 0,
      fitsOnePage: offset === 0 && length < pageSize,
    },
  );
}

/** The last page of a reading. */
interface LastPage extends SweptPage {
  /** Whether it ends where `total_records` says. */
  readonly isAtEnd: boolean;
  readonly isEmpty: boolean;
  /** Whether it is the first one, too, and has room for more records. */
  readonly fitsOnePage: boolean;
}

/** A sweep whose last page has come, with what it has shown. */
function readToEnd(sweep: SweepProgress, page: LastPage): SweepProgress {
  const { number, beganAt, distinct, top, peak, heldBack } = sweep;
  const { settled, isPolled, now, proofMs } = page;
  // A list that is suddenly empty proves nothing: such an answer is more likely than the fact. It
  // may be so in the middle of a sweep, too: then the last page is the empty one.
  if (distinct === 0 || page.isEmpty) return { ...sweep, proof: 'nothing', proving: [] };
  if (!settled || sweep.interrupted) return { ...sweep, proof: 'doubtful' };
  const lacksMass = heldBack.some(({ isConfirmed }) => !isConfirmed);
  const isCut = mayBeCut({ top, peak, lacksMass, fitsOnePage: page.fitsOnePage });
  const since = sweep.cut?.total === top ? sweep.cut.since : now;
  const proof =
    sweep.total === distinct ? 'exact' : isAnchored(sweep, page) ? 'anchored' : 'complete';
  const read: SweepProgress = { ...sweep, proof, cut: isCut ? { total: top, since } : null };
  if (proof === 'complete' || isCut) return read;
  const newest: ProvingReading = { number, beganAt, at: now };
  return proof === 'anchored' && isPolled
    ? { ...read, newest, awaitsPolls: true }
    : proven(read, newest, proofMs);
}

/**
 * Whether a reading with a total that moved has all that stood still, and what has moved can't be missing from it: polls find that, or nothing
 * ever moves. A record without a key may be any of those that are missing.
 */
function isAnchored(
  { isUnordered, keyOrder, counts }: SweepProgress,
  { isAtEnd, isPolled }: Pick<LastPage, 'isAtEnd' | 'isPolled'>,
): boolean {
  if (isUnordered || !isAtEnd || counts?.rejected !== 0) return false;
  return isPolled || keyOrder === 'asc' || keyOrder === 'desc';
}

function proven(sweep: SweepProgress, newest: ProvingReading, proofMs: number): SweepProgress {
  const proving = provingWith(sweep.proving, newest, proofMs);
  return { ...sweep, newest, awaitsPolls: false, proving };
}

/** An anchored sweep once polls that began after it have looked at all that has changed. */
export function polledAfter(sweep: SweepProgress, now: number, proofMs: number): SweepProgress {
  const { newest } = sweep;
  return newest ? proven(sweep, { ...newest, at: now }, proofMs) : sweep;
}

/** The sweep once its missing keys were held against the limit. */
export function judgedSweep(
  sweep: SweepProgress,
  { heldBack, hasRecovered }: { heldBack: readonly HeldBack[]; hasRecovered: boolean },
): SweepProgress {
  return {
    ...sweep,
    judged: sweep.number,
    heldBack,
    ...(hasRecovered && { proving: [] }),
  };
}

/** After the last page of an initial snapshot. */
export function snapshotDone(sweep: SweepProgress, now: number): SweepProgress {
  // The first sweep is due an interval after it, and no proof begins with it.
  return { ...sweep, phase: 'done', beganAt: now, proving: [] };
}

const AGREEING: ReadonlySet<Proof> = new Set<Proof>(['complete', 'anchored', 'exact']);

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
 * A key has to be absent from a reading that proves something, from another that began `proofMs` later, and from each in between. An index
 * that is wrong for less shows itself to one of the two at most.
 */
export function seenSince(sweep: SweepProgress, proofMs: number): number | undefined {
  const { phase, proving, newest, awaitsPolls } = sweep;
  if (phase !== 'removing' || newest === null || awaitsPolls) return undefined;
  return provenSince(proving, newest, proofMs);
}

/** How long what was asked for once still has to stay gone before it is asked for again, ms. */
export function proofLeft({ askedAt }: SweepProgress, now: number, proofMs: number): number {
  return askedAt === null ? 0 : Math.min(proofMs, Math.max(0, askedAt + proofMs - now));
}
