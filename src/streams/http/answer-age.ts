/** Upper bound of the age of an answer's content. */
export interface AnswerAge {
  /** Earliest local time, in ms, at which the server can have read the content: when the request was sent, less `staleMs`. */
  readonly asOf: number;
  /** How long before the request the answer was generated, in ms, according to its headers; 0 for an answer that no cache held. */
  readonly staleMs: number;
}

/**
 * Longest assumed lag of a read replica, in ms. The answers of a replica do not show its lag. Too small: a lagging replica causes false
 * events. Too large: a record that really went back to an earlier state is published that much later.
 */
export const MAX_LAG_MS = 10_000;

/** Whether an answer counts as cached: it is more than {@link MAX_LAG_MS} old, longer than a replica may lag. False for an unknown age. */
export function isStale(age: AnswerAge | undefined): boolean {
  return age !== undefined && age.staleMs > MAX_LAG_MS;
}

/** Age of an answer that was joined from several: that of the oldest part. Undefined when no part's age is known. */
export function oldestOf(ages: readonly (AnswerAge | undefined)[]): AnswerAge | undefined {
  const known = ages.filter((age) => age !== undefined);
  if (known.length === 0) return undefined;
  return {
    asOf: Math.min(...known.map(({ asOf }) => asOf)),
    staleMs: Math.max(...known.map(({ staleMs }) => staleMs)),
  };
}

/** The times and headers of an answer from which its age is computed. */
export interface DatedAnswer {
  /** When its request was sent, in ms on the local clock. */
  readonly askedAt: number;
  /** Time from the request to the last byte of the answer, in ms. */
  readonly elapsedMs: number;
  /** The `Date` header, ms since the epoch; undefined when there is none. */
  readonly date: number | undefined;
  /** The `Age` header in ms; undefined when it is missing or not plausible. */
  readonly ageMs: number | undefined;
  /** The request's address; undefined for requests that are mostly made once, such as windows of dates. Default undefined. */
  readonly address?: string | undefined;
}

/** Estimates the ages of the answers of one API. */
export interface AnswerAges {
  /** Age of an answer, computed from its headers and from the headers of earlier answers. Call it once for each answer. */
  readonly of: (answer: DatedAnswer) => AnswerAge & {
    /** How far the answer's `Date` is behind the `Date` of other answers, in ms; 0 if it is not behind. */
    readonly dateLagMs: number;
  };
}

/** Resolution of the `Date` header, in ms: it has whole seconds. */
const DATE_STEP_MS = 1_000;
/** Maximum number of slow backend clocks remembered. Too small: answers of one more slow backend count as cached. */
const MAX_CLOCKS = 4;
/** Largest difference, in ms, between the offsets that two answers of one clock show; latency and the resolution of `Date` cause it. */
const SAME_CLOCK_MS = 3_000;
/**
 * How long, in ms, and in how many answers a `Date` must be behind by a constant amount before it counts as a slow clock and not as a
 * cache. Too small: a cached page counts as fresh. Too large: answers of a slow backend count as cached for longer.
 */
const STEADY_MS = 30_000;
const STEADY_ANSWERS = 5;
/** Addresses whose answers are remembered; some 200 bytes each. Too small: repeated answers of a list with more pages are not recognised. */
const MAX_ADDRESSES = 1_000;

/**
 * Estimates ages from the `Age` header and from `Date`: a cache passes on the `Date` of the origin, so
 *
 * - an answer with the `Date` of an earlier answer to the same request, sent more than a second before, is that answer from a cache;
 * - the `Date` of an answer that was cached for another client is behind the `Date` of other answers. A backend whose clock is slow, or was set
 *   back, looks the same at first. But its `Date` stays behind by a constant amount, while that of a cached answer falls further behind. After
 *   {@link STEADY_MS} such a clock is recognised, and its answers no longer count as stale.
 */
export function answerAges(): AnswerAges {
  /** Lower bound of how far the server's fastest clock is ahead of the local clock, in ms. */
  let ahead = -Infinity;
  /** Slower clocks of the server, the least recently seen first. `ahead` as above; `since`: first seen, in ms on the local clock. */
  const clocks: { readonly ahead: number; readonly since: number; answers: number }[] = [];

  /** Whether an answer comes from a recognised slow clock. `maxAhead`: upper bound of that clock's lead over the local one, in ms. */
  const isOfSteadyClock = (maxAhead: number, now: number): boolean => {
    const place = clocks.findIndex((clock) => Math.abs(clock.ahead - maxAhead) <= SAME_CLOCK_MS);
    const [known] = place < 0 ? [] : clocks.splice(place, 1);
    const clock = known ?? { ahead: maxAhead, since: now, answers: 0 };
    clock.answers += 1;
    clocks.push(clock);
    if (clocks.length > MAX_CLOCKS) clocks.shift();
    return clock.answers >= STEADY_ANSWERS && now - clock.since >= STEADY_MS;
  };
  /** The first answer with the current `Date`, by address; the least recently requested address first. */
  const firsts = new Map<string, DatedAnswer & { readonly lagMs: number }>();

  /** How far the `Date` of an answer is behind, in ms. For a repeated answer: its lag when it was first received, plus the time since then. */
  const lagOf = (answer: DatedAnswer): number => {
    const { address, askedAt, date } = answer;
    const lagMs = dateLag(answer);
    if (address === undefined || date === undefined) return lagMs;
    const known = firsts.get(address);
    const first = known?.date === date ? known : { ...answer, lagMs };
    firsts.delete(address);
    firsts.set(address, first);
    if (firsts.size > MAX_ADDRESSES) firsts.delete(firsts.keys().next().value!);
    const since = askedAt - first.askedAt;
    return since > first.elapsedMs + DATE_STEP_MS ? first.lagMs + since : lagMs;
  };
  const dateLag = ({ askedAt, elapsedMs, date }: DatedAnswer): number => {
    if (date === undefined) return 0;
    const maxAhead = date + DATE_STEP_MS - askedAt;
    ahead = Math.max(ahead, date - elapsedMs - askedAt);
    const lag = ahead - maxAhead;
    return lag <= MAX_LAG_MS || isOfSteadyClock(maxAhead, askedAt) ? 0 : lag;
  };
  return {
    of: (answer) => {
      const dateLagMs = lagOf(answer);
      const staleMs = Math.max(answer.ageMs ?? 0, dateLagMs);
      return { asOf: answer.askedAt - staleMs, staleMs, dateLagMs };
    },
  };
}
