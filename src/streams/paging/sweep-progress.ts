import type { Position } from './anchors.ts';
import { provingPairs, provingWith } from './absence-proof.ts';
import type { ProvingPair, ProvingReading } from './absence-proof.ts';
import { isMass } from './deletion-limit.ts';
import type { HeldBack } from './deletion-limit.ts';
import { isByKey, NO_ORDER, orderAfter } from './list-order.ts';
import type { ListOrder } from './list-order.ts';
import type { ScanPage } from './pages.ts';
import { recordsOf } from '../decode/answer.ts';
import { countsAfter, NOTHING_COUNTED, sizeOf } from './reading-counts.ts';
import type { ReadingCounts } from './reading-counts.ts';

/**
 * What a sweep has shown. `complete`: the whole list was read, and it was not empty. `anchored`: each record that stood still was read, as
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
  /** `total_records` for as long as it holds still. */
  readonly total: number | 'not known yet' | 'moved';
  /** Distinct keys read. */
  readonly distinct: number;
  /** What it has met beside those; null where an older version has read a part of it. */
  readonly counts: ReadingCounts | null;
  /** How its records are sorted. */
  readonly order: ListOrder;
  /** Of the newest sweep that was read to its end. */
  readonly proof: Proof;
  /** Readings that a pair of readings which proves an absence may consist of, the oldest first. */
  readonly proving: readonly ProvingReading[];
  /** The newest sweep as one of them; null if it can't be one, or is not read to its end. */
  readonly newest: ProvingReading | null;
  /** Whether polls have yet to look at all that changed during it, before it proves something. */
  readonly awaitsPolls: boolean;
  /** Whether unchanged records have ever changed places: then anchors prove nothing. */
  readonly isUnordered: boolean;
  /** The highest total that a complete reading has ended with; of a list that has lost a mass, since then. */
  readonly peak: number | null;
  /** The list's last record, and the first of the complete readings in a row that ended with it. */
  readonly end: { readonly key: string; readonly since: number } | null;
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
  order: NO_ORDER,
  proof: 'nothing',
  proving: [],
  newest: null,
  awaitsPolls: false,
  isUnordered: false,
  peak: null,
  end: null,
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
  const { phase, proving, newest, askedAt, keptAt } = sweep;
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
    askedAt: askedAt === null ? null : askedAt + away,
    ...(byOthers && { proving: [], newest: null, end: null, askedUpTo: null, askedAt: null }),
    keptAt: now,
  };
  if (phase === 'reading') return { ...over, interrupted: true };
  return phase === 'done' || canBeAsked ? over : { ...over, phase: 'done' };
}

/** The next sweep, whose first page was asked for at a time. */
export function nextSweep(last: SweepProgress, beganAt: number): SweepProgress {
  const { number, proof, proving, isUnordered, peak, end, judged, heldBack, order } = last;
  return {
    ...NO_SWEEP,
    ...{ number: number + 1, beganAt, phase: 'reading', counts: NOTHING_COUNTED },
    ...{ proof, proving, isUnordered, peak, end, judged, heldBack },
    order: { ...NO_ORDER, keepsPlaces: order.keepsPlaces },
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
  /** Whether a record of the page that has changed stands in front of one that has not. */
  readonly keepsPlaces: boolean;
  /** False when the list did not add up and was not read to the end of its doubts. */
  readonly settled: boolean;
  /** False once unchanged records have changed places. */
  readonly ordered: boolean;
  /** Whether polls read what has changed, too. */
  readonly isPolled: boolean;
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
  const { fresh, leftOut, rejectedAt, keepsPlaces, settled, ordered, now } = page;
  const { total_records } = answer.pagination;
  const still = sweep.total === 'not known yet' || sweep.total === total_records;
  const records = recordsOf(answer);
  const { length } = records;
  const { serverTime } = answer;
  const at = { first: serverTime ?? sweep.beganAt, later: serverTime ?? now };
  const order = orderAfter(sweep.order, records);
  const isUnordered = sweep.isUnordered || !ordered;
  const read: SweepProgress = {
    ...sweep,
    total: still ? total_records : 'moved',
    distinct: sweep.distinct + fresh,
    counts:
      sweep.counts &&
      countsAfter(sweep.counts, { offset, length, at, rejectedAt, leftOut, settled }),
    order: { ...order, keepsPlaces: order.keepsPlaces || keepsPlaces },
    isUnordered,
    // What was proven by anchors before was not.
    ...(isUnordered && !sweep.isUnordered && { proving: [] }),
  };
  if (next) return { ...read, position: next };
  return readToEnd({ ...read, phase: 'removing', position: null }, total_records, {
    ...page,
    isAtEnd: offset + length === total_records,
    isEmpty: length === 0,
  });
}

/** A sweep whose last page has come, with what it has shown. */
function readToEnd(
  sweep: SweepProgress,
  total: number,
  page: SweptPage & { readonly isAtEnd: boolean; readonly isEmpty: boolean },
): SweepProgress {
  const { number, distinct } = sweep;
  const { settled, isAtEnd, isPolled, now, proofMs } = page;
  // A list that is suddenly empty proves nothing: such an answer is more likely than the fact. It
  // may be so in the middle of a sweep, too: then the last page is the empty one.
  if (distinct === 0 || page.isEmpty) return { ...sweep, proof: 'nothing', proving: [] };
  if (!settled || sweep.interrupted) return { ...sweep, proof: 'doubtful' };
  const peak =
    sweep.peak === null || isMass(sweep.peak - total, sweep.peak, MASS_PERCENT)
      ? total
      : Math.max(sweep.peak, total);
  const last = isAtEnd ? sweep.order.last : null;
  const end = last && (sweep.end?.key === last.key ? sweep.end : { key: last.key, since: number });
  const proof =
    sweep.total === distinct ? 'exact' : isAnchored(sweep, page) ? 'anchored' : 'complete';
  const read: SweepProgress = { ...sweep, proof, peak, end };
  if (proof === 'complete') return read;
  const newest: ProvingReading = {
    ...{ number, beganAt: sweep.beganAt, at: now, total },
    order: isAtEnd ? sweep.order : null,
    lastSince: end?.since ?? number,
  };
  return proof === 'anchored' && isPolled
    ? { ...read, newest, awaitsPolls: true }
    : proven(read, newest, proofMs);
}

/** Of the peak of a list's totals, in percent: one that is so much lower is another list's, or that of another server. */
const MASS_PERCENT = 5;

/**
 * Whether a reading with a total that moved has all that stood still, and what has moved can't be missing from it: polls find that, or nothing
 * ever moves. A record without a key may be any of those that are missing.
 */
function isAnchored(
  { isUnordered, order, counts }: SweepProgress,
  { isAtEnd, isPolled }: Pick<SweptPage, 'isPolled'> & { readonly isAtEnd: boolean },
): boolean {
  if (isUnordered || !isAtEnd || counts?.rejected !== 0) return false;
  return isPolled || isByKey(order);
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
 * Where nothing can be asked for: the pairs of readings by which a key may be gone, the newest first.
 *
 * A key has to be absent from a reading that proves something, from another that began `proofMs` later, and from each in between. An index
 * that is wrong for less shows itself to one of the two at most.
 */
export function absencePairs(sweep: SweepProgress, proofMs: number): readonly ProvingPair[] {
  const { proving, newest, awaitsPolls } = sweep;
  const isKept = newest === null || proving.at(-1)?.number === newest.number;
  return provingPairs(isKept || awaitsPolls ? proving : [...proving, newest], proofMs);
}

/** How long what was asked for once still has to stay gone before it is asked for again, ms. */
export function proofLeft({ askedAt }: SweepProgress, now: number, proofMs: number): number {
  return askedAt === null ? 0 : Math.min(proofMs, Math.max(0, askedAt + proofMs - now));
}
