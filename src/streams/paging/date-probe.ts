// Probes that measure, by trial requests, how a list interprets its date parameters.

import type { ListDates } from './list-dates.ts';
import type { Window } from './poll.ts';

/** Dates of a trial request. Without dates, the list's first page is requested. */
export type ProbeDates = Partial<Window>;

/** Formats windows in the list's current date format, and has the offset from stamps to date parameters as measured so far. */
type Dates = Pick<ListDates, 'canEnd' | 'closed' | 'polled' | 'offsetMs'>;

export interface ProbeReply {
  /** Modification time of each record, in epoch ms; null for a record without one. */
  readonly stamps: readonly (number | null)[];
  /** Whether the response has all records of the window. */
  readonly isWhole: boolean;
  /**
   * Whether a request with dates failed for good: the server refused it, or kept failing (`isUnanswered`) although it responds to requests
   * without dates.
   */
  readonly isRefused: boolean;
  /**
   * Only if `isRefused`: whether the server kept failing (with a 5xx or without a response) instead of refusing the request. Default false.
   */
  readonly isUnanswered?: boolean;
}

export type ProbeFinding =
  /** A record with the modification time `s` matches a request whose date parameter has the value `s + offsetMs`. */
  | { readonly kind: 'offset'; readonly offsetMs: number }
  /** The list cannot be polled by dates: it ignores the dates, or returns no records for any window. */
  | { readonly kind: 'no-dates'; readonly why: 'ignored' | 'empty' }
  /** The probe was inconclusive, for example because no record has a modification time, a request was refused, or the list changed. */
  | { readonly kind: 'unknown' };

/** Step of the search for the offset from stamps to date parameters, in ms: all time zones differ by whole quarters of an hour. */
const QUARTER_MS = 15 * 60_000;
/**
 * Half the length of the narrow windows that a probe requests, in ms. Together with `STAMP_TOLERANCE_MS` it has to be less than half of
 * `QUARTER_MS`; otherwise the windows for neighboring time zone offsets overlap.
 */
const NEAR_MS = 6 * 60_000;
/**
 * Largest time zone offset that is tried, in quarters of an hour, in both directions. Time zones differ from UTC by at most 14 hours, which
 * is 56 quarters; the rest is a margin.
 */
const MOST_QUARTERS = 60;
const DAY_MS = 86_400_000;
/**
 * How far outside a window a returned stamp may lie, in ms. The server may compare stamps of a higher precision, or truncate the bounds.
 */
const STAMP_TOLERANCE_MS = 60_000;
/** A window in which no record can have been modified; in epoch ms. */
const LONG_AGO = { from: Date.UTC(1990, 0, 1), to: Date.UTC(1990, 0, 1, 0, 1) };

/**
 * Measures the offset of a list's date parameters: the number of ms to add to a record's stamp (modification time) so that a request with
 * that date matches the record. Also detects that the list ignores dates, or returns no records for them. A generator that yields trial
 * requests:
 *
 * 1. A narrow window around the newest stamp seen, shifted by the offset measured before. If only records with about that stamp are
 *    returned, the offset is still right.
 * 2. Otherwise the first page of the list. The offset is then searched for with the newest stamp and with up to three stamps of that page.
 *
 * An offset of 0 counts as soon as one stamp gives it. Another offset counts only if two stamps give it, or if only one stamp is known.
 *
 * @param dates Has the offset measured before, `dates.offsetMs`. If the API has no parameter for the end of a window, the finding is
 * `unknown`.
 * @param now The server's time, in epoch ms.
 * @param newest The newest stamp seen, in epoch ms; undefined if there is none.
 */
export function* dateProbe(
  dates: Dates,
  now: number,
  newest: number | undefined,
): Generator<ProbeDates, ProbeFinding, ProbeReply> {
  if (!dates.canEnd) return UNKNOWN;
  const known = dates.offsetMs;
  if (newest !== undefined) {
    const first = yield near(dates, newest, known, now);
    if (showsStamp(first, newest)) return { kind: 'offset', offsetMs: known };
  }
  const stamps = distinct(yield {});
  // A server in another time zone may consider the newest stamp to be in the future, and refuse it.
  const witnesses = new Set(
    [newest, stamps[0], stamps.at(-1), stamps[stamps.length >> 1]].filter((at) => at !== undefined),
  );
  const found: ProbeFinding[] = [];
  for (const stamp of witnesses) {
    const finding = yield* search(dates, now, stamp);
    if (finding.kind === 'unknown') continue;
    if (finding.kind === 'offset' && finding.offsetMs === 0) return finding;
    // A list may return nothing for the newer stamps only, because their windows end in its future.
    const isFinal = finding.kind === 'offset' || finding.why === 'ignored';
    if (isFinal && found.some((each) => isSameFinding(each, finding))) return finding;
    found.push(finding);
  }
  const [only] = found;
  // A midnight may be a stamp that was truncated to the day.
  const isAlone = witnesses.size === 1 && stamps.length === 1 && stamps[0]! % DAY_MS !== 0;
  const isAgreed = only?.kind === 'no-dates' && found.every((each) => isSameFinding(each, only));
  return only && (isAlone || isAgreed) ? only : UNKNOWN;
}

/**
 * Searches for the number of ms to add to `stamp` so that a narrow window around the sum returns the record with that stamp. Tries 0 and
 * `dates.offsetMs`, and then bisects the range of all time zones. The finding is:
 *
 * - `offset` if the offset was found;
 * - `no-dates` if the list ignores dates, or returns no records for them;
 * - `unknown` otherwise, for example if a request is refused.
 */
function* search(
  dates: Dates,
  now: number,
  stamp: number,
): Generator<ProbeDates, ProbeFinding, ProbeReply> {
  for (const offset of new Set([0, dates.offsetMs])) {
    const reply = yield near(dates, stamp, offset, now);
    if (reply.isRefused) return UNKNOWN;
    if (showsStamp(reply, stamp)) return { kind: 'offset', offsetMs: offset };
    if (isSpread(reply)) {
      const impossible = yield dates.closed(LONG_AGO.from, LONG_AGO.to);
      return impossible.stamps.length > 0 ? { kind: 'no-dates', why: 'ignored' } : UNKNOWN;
    }
  }
  let [low, high] = [-MOST_QUARTERS, MOST_QUARTERS];
  const all = yield dates.closed(stamp - 2 * DAY_MS, stamp + 2 * DAY_MS);
  if (all.stamps.length === 0) {
    if (all.isRefused || !all.isWhole) return UNKNOWN;
    const again = yield {}; // whether the record is still there
    return again.stamps.includes(stamp) ? { kind: 'no-dates', why: 'empty' } : UNKNOWN;
  }
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const from = stamp + low * QUARTER_MS - NEAR_MS;
    const to = stamp + middle * QUARTER_MS + NEAR_MS;
    const reply = yield dates.closed(from, to);
    const before = high - low;
    if (reply.isRefused) return UNKNOWN;
    if (reply.isWhole && !reply.stamps.includes(stamp)) low = middle + 1;
    for (const at of stampsIn(reply)) {
      low = Math.max(low, Math.ceil((from - STAMP_TOLERANCE_MS - at) / QUARTER_MS));
      high = Math.min(high, Math.floor((to + STAMP_TOLERANCE_MS - at) / QUARTER_MS));
    }
    if (high - low === before) return UNKNOWN;
  }
  if (low > high || low === 0) return UNKNOWN;
  const offsetMs = low * QUARTER_MS;
  const last = yield near(dates, stamp, offsetMs, now);
  return showsStamp(last, stamp) ? { kind: 'offset', offsetMs } : UNKNOWN;
}

/**
 * Tests whether the list misinterprets the end of poll windows; returns true if it does. A generator that yields trial requests.
 *
 * The list misinterprets the end if a narrow window shows a record, but a poll window with the same start shows no record at all, or one
 * that is more than a day older.
 *
 * @param now The server's time, in epoch ms.
 * @param newest The newest stamp (modification time) seen, in epoch ms; undefined if there is none.
 */
export function* endProbe(
  dates: Dates,
  now: number,
  newest: number | undefined,
): Generator<ProbeDates, boolean, ProbeReply> {
  const offset = dates.offsetMs;
  const polled = (stamp: number) => dates.polled(stamp + offset - NEAR_MS);
  const isMisread = ({ isRefused, stamps }: ProbeReply, stamp: number): boolean => {
    const isTooOld = (at: number | null) => at !== null && at < stamp - NEAR_MS - DAY_MS;
    return !isRefused && (stamps.length === 0 || stamps.some(isTooOld));
  };
  if (newest !== undefined && !isMisread(yield polled(newest), newest)) return false;
  const latestPastStamp = (newest ?? Infinity) - 2 * NEAR_MS;
  const older = distinct(yield {}).find((at) => at <= latestPastStamp);
  // The newest record may not have reached every replica yet.
  const isSettled = newest !== undefined && newest < now - 2 * NEAR_MS;
  for (const stamp of isSettled ? [newest, older] : [older, newest]) {
    if (stamp === undefined || !showsStamp(yield near(dates, stamp, offset, now), stamp)) continue;
    return isMisread(yield polled(stamp), stamp);
  }
  return false;
}

const UNKNOWN: ProbeFinding = { kind: 'unknown' };

/**
 * Returns a narrow window from `NEAR_MS` before to `NEAR_MS` after `stamp`, both bounds shifted by `offset` ms. The window ends earlier if
 * its end, before the shift, would be in the future.
 */
function near(dates: Dates, stamp: number, offset: number, now: number): Window {
  // Some servers misinterpret windows that end in their future.
  const to = Math.min(stamp + NEAR_MS, Math.max(stamp, now));
  return dates.closed(stamp + offset - NEAR_MS, to + offset);
}

function stampsIn({ stamps }: ProbeReply): readonly number[] {
  return stamps.filter((at) => at !== null);
}

function distinct(reply: ProbeReply): readonly number[] {
  return [...new Set(stampsIn(reply))].sort((a, b) => b - a);
}

/**
 * Whether a response shows records with stamps, and all of these stamps lie in the narrow window around `stamp` (`NEAR_MS` and a
 * tolerance to either side).
 */
function showsStamp(reply: ProbeReply, stamp: number): boolean {
  const stamped = stampsIn(reply);
  const isFit = (at: number) => Math.abs(at - stamp) <= NEAR_MS + STAMP_TOLERANCE_MS;
  return stamped.length > 0 && stamped.every(isFit);
}

/** Whether the server ignored the dates of a narrow window: the returned stamps are further apart than the window is long. */
function isSpread(reply: ProbeReply): boolean {
  const known = stampsIn(reply);
  return Math.max(...known) - Math.min(...known) > 2 * (NEAR_MS + STAMP_TOLERANCE_MS);
}

function isSameFinding(a: ProbeFinding, b: ProbeFinding): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
