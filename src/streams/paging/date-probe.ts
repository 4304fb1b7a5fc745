/** A request of a probe: the list's first page, or a window of modification dates, in ms. `poll-end`: with the end that polls use. */
export type ProbeQuestion = 'undated' | { readonly from: number; readonly to: number | 'poll-end' };

/** The content of an answer that a probe evaluates. */
export interface ProbeReply {
  /** `updated_at` of the records, in ms; null where there is none. */
  readonly stamps: readonly (number | null)[];
  /** Whether these are all records of the window. */
  readonly isWhole: boolean;
  /** Whether the request was refused, or had no answer while one without dates had one. */
  readonly isRefused: boolean;
  /** Whether a refused request had no answer: what it asks for may be fine. Default false. */
  readonly isUnanswered?: boolean;
}

export type ProbeFinding =
  /** A record stamped `s` is found by the parameter `s + offsetMs`. */
  | { readonly kind: 'offset'; readonly offsetMs: number }
  | { readonly kind: 'no-dates'; readonly why: 'ignored' | 'empty' }
  /** Nothing can be said: no record has a modification time, or the list moved meanwhile. */
  | { readonly kind: 'unknown' };

/** All zones are whole quarters of an hour apart. */
const QUARTER_MS = 15 * 60_000;
/** Half the length of a narrow window: windows of two offsets have no stamp in common, even if stamps are cut to the minute. */
const NEAR_MS = 6 * 60_000;
/** Offsets looked for: zones reach from UTC-12 to UTC+14. */
const MOST_QUARTERS = 60;
const DAY_MS = 86_400_000;
/** The server may compare by finer times than the stamps that it shows, or cut its bounds: a stamp may lie this much outside of its window, in ms. */
const BOUND_MS = 60_000;
/** A minute in which no record was modified. */
const LONG_AGO = { from: Date.UTC(1990, 0, 1), to: Date.UTC(1990, 0, 1, 0, 1) };
/** Stamps searched for in one probe. */
const MAX_WITNESSES = 4;

/**
 * Finds out how a list reads its date parameters: asks for a narrow window around the stamp of a record that was read. A list that
 * reads them as written shows it, at the cost of one request. Otherwise the first page is read again, and the stamps on it are searched
 * for by halving the range of all zones' offsets.
 *
 * Only what a correct server could never answer counts: a record in a window that its stamp is hours away from. Two stamps must agree, unless
 * the list has only one; stamps cut to the day say nothing of a time of day, so one alone must not be a midnight.
 *
 * @param now The server's time, in ms.
 * @param newest The newest stamp seen, if any.
 * @param known The offset found before, in ms: asked first.
 */
export function* dateProbe(
  now: number,
  newest: number | undefined,
  known = 0,
): Generator<ProbeQuestion, ProbeFinding, ProbeReply> {
  if (newest !== undefined) {
    const first = yield near(newest, known, now);
    if (isIn(first, newest)) return { kind: 'offset', offsetMs: known };
  }
  const page = yield 'undated';
  const stamps = distinct(page);
  // A server in another zone may take the newest for the future, and refuse it.
  const witnesses = new Set(
    [newest, stamps[0], stamps.at(-1), stamps[stamps.length >> 1]].filter((at) => at !== undefined),
  );
  const found: ProbeFinding[] = [];
  for (const stamp of [...witnesses].slice(0, MAX_WITNESSES)) {
    const finding = yield* search(now, stamp, known);
    if (finding.kind === 'unknown') continue;
    if (finding.kind === 'offset' && finding.offsetMs === 0) return finding;
    // A list may show nothing for newer stamps alone, because the windows end in its future.
    const isFinal = finding.kind === 'offset' || finding.why === 'ignored';
    if (isFinal && found.some((each) => isSame(each, finding))) return finding;
    found.push(finding);
  }
  const [only] = found;
  const isAlone = witnesses.size === 1 && stamps.length === 1 && stamps[0]! % DAY_MS !== 0;
  return only && (isAlone || only.kind === 'no-dates') ? only : { kind: 'unknown' };
}

/** Looks for the offset at which a window shows a stamp. */
function* search(
  now: number,
  stamp: number,
  known: number,
): Generator<ProbeQuestion, ProbeFinding, ProbeReply> {
  for (const offset of new Set([0, known])) {
    const reply = yield near(stamp, offset, now);
    if (reply.isRefused) return UNKNOWN;
    if (isIn(reply, stamp)) return { kind: 'offset', offsetMs: offset };
    if (isSpread(reply)) {
      const impossible = yield LONG_AGO;
      return impossible.stamps.length > 0 ? { kind: 'no-dates', why: 'ignored' } : UNKNOWN;
    }
  }
  let [low, high] = [-MOST_QUARTERS, MOST_QUARTERS];
  const all = yield { from: stamp - 2 * DAY_MS, to: stamp + 2 * DAY_MS };
  if (all.stamps.length === 0) {
    if (all.isRefused || !all.isWhole) return UNKNOWN;
    const again = yield 'undated'; // the record is still there
    return again.stamps.includes(stamp) ? { kind: 'no-dates', why: 'empty' } : UNKNOWN;
  }
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const from = stamp + low * QUARTER_MS - NEAR_MS;
    const to = stamp + middle * QUARTER_MS + NEAR_MS;
    const reply = yield { from, to };
    const before = high - low;
    if (reply.isRefused) return UNKNOWN;
    if (reply.isWhole && !reply.stamps.includes(stamp)) low = middle + 1;
    for (const at of reply.stamps) {
      if (at === null) continue;
      low = Math.max(low, Math.ceil((from - BOUND_MS - at) / QUARTER_MS));
      high = Math.min(high, Math.floor((to + BOUND_MS - at) / QUARTER_MS));
    }
    if (high - low === before) return UNKNOWN;
  }
  if (low > high || low === 0) return UNKNOWN;
  const offsetMs = low * QUARTER_MS;
  const last = yield near(stamp, offsetMs, now);
  return isIn(last, stamp) ? { kind: 'offset', offsetMs } : UNKNOWN;
}

/**
 * Finds out whether the list misreads the end of polls' windows: asked with that end, it shows nothing since shortly before a stamp (or
 * records from long before it), while a window that ends in the past shows the stamp. One request where the end is read as written.
 *
 * @param now The server's time, in ms.
 * @param offset The offset from stamps to parameters, in ms.
 * @param newest The newest stamp seen, if any.
 * @returns Whether the end is misread.
 */
export function* endProbe(
  now: number,
  newest: number | undefined,
  offset: number,
): Generator<ProbeQuestion, boolean, ProbeReply> {
  const polled = (stamp: number): ProbeQuestion => ({
    from: stamp + offset - NEAR_MS,
    to: 'poll-end',
  });
  const isMisread = ({ isRefused, stamps }: ProbeReply, stamp: number): boolean => {
    const isTooOld = (at: number | null) => at !== null && at < stamp - NEAR_MS - DAY_MS;
    return !isRefused && (stamps.length === 0 || stamps.some(isTooOld));
  };
  if (newest !== undefined && !isMisread(yield polled(newest), newest)) return false;
  const settled = (newest ?? Infinity) - 2 * NEAR_MS;
  const older = distinct(yield 'undated').find((at) => at <= settled);
  // The newest record may not have reached each replica yet.
  const isSettled = newest !== undefined && newest < now - 2 * NEAR_MS;
  for (const stamp of isSettled ? [newest, older] : [older, newest]) {
    if (stamp === undefined || !isIn(yield near(stamp, offset, now), stamp)) continue;
    return isMisread(yield polled(stamp), stamp);
  }
  return false;
}

const UNKNOWN: ProbeFinding = { kind: 'unknown' };

/** A narrow window around a stamp. It does not end in the server's future if the offset is right, as some lists misread such an end. */
function near(stamp: number, offset: number, now: number): { from: number; to: number } {
  const to = Math.min(stamp + NEAR_MS, Math.max(stamp, now));
  return { from: stamp + offset - NEAR_MS, to: to + offset };
}

/** The stamps of an answer, the newest first, each once. */
function distinct({ stamps }: ProbeReply): readonly number[] {
  return [...new Set(stamps.filter((at) => at !== null))].sort((a, b) => b - a);
}

/** Whether a narrow window around a stamp shows stamps that lie in it, and no others. */
function isIn({ stamps }: ProbeReply, stamp: number): boolean {
  const stamped = stamps.filter((at) => at !== null);
  const isFit = (at: number) => Math.abs(at - stamp) <= NEAR_MS + BOUND_MS;
  return stamped.length > 0 && stamped.every(isFit);
}

/** Whether stamps are further apart than a narrow window is long. */
function isSpread({ stamps }: ProbeReply): boolean {
  const known = stamps.filter((at) => at !== null);
  return Math.max(...known) - Math.min(...known) > 2 * (NEAR_MS + BOUND_MS);
}

function isSame(a: ProbeFinding, b: ProbeFinding): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
