/** Upper bound of the age of a response's content. */
export interface AnswerAge {
  /** Earliest local time of the content, in ms: when the request was sent, less `staleMs`. */
  readonly asOf: number;
  /** How much older than its request the response is by its headers, in ms; 0 if it comes from no cache. */
  readonly staleMs: number;
}

/**
 * Longest assumed lag of a read replica, in ms. The responses of a replica do not show its lag. Too small: a lagging replica causes false
 * events. Too large: a record that really went back to an earlier state is published that much later.
 */
export const MAX_LAG_MS = 10_000;

/** Whether a response is cached, as it is older than a replica may lag. False for an unknown age. */
export function isStale(age: AnswerAge | undefined): boolean {
  return age !== undefined && age.staleMs > MAX_LAG_MS;
}

/** Age of the oldest of several responses; undefined if none is known. */
export function oldestOf(ages: readonly (AnswerAge | undefined)[]): AnswerAge | undefined {
  const known = ages.filter((age) => age !== undefined);
  if (known.length === 0) return undefined;
  return {
    asOf: Math.min(...known.map(({ asOf }) => asOf)),
    staleMs: Math.max(...known.map(({ staleMs }) => staleMs)),
  };
}

/** Times and headers of a response, from which its age is computed. */
export interface DatedAnswer {
  /** When the request was sent, in ms on the local clock. */
  readonly askedAt: number;
  /** Time from the request to the last byte of the response, in ms. */
  readonly elapsedMs: number;
  /** The `Date` header, ms since the epoch; undefined when there is none. */
  readonly date: number | undefined;
  /** The `Age` header in ms; undefined when it is missing or not plausible. */
  readonly ageMs: number | undefined;
  /**
   * The request's address, by which repeated requests are recognised; undefined for requests that are mostly made once, such as windows of
   * dates. Default undefined.
   */
  readonly address?: string | undefined;
}

/** Estimates the ages of one API's responses. */
export interface AnswerAges {
  /** Age of a response by its headers and those of earlier ones. Call it once for each response. */
  readonly of: (answer: DatedAnswer) => AnswerAge & {
    /** How far the response's `Date` is behind the `Date` of other responses, in ms; 0 if it is not behind. */
    readonly dateLagMs: number;
  };
}

const DATE_STEP_MS = 1_000;
/** Maximum number of remembered slow clocks of backends. Too small: responses of one more slow backend count as cached. */
const MAX_CLOCKS = 4;
/**
 * Two responses have the same server clock if their `Date` is ahead of the local clock by as much, within this many ms. Too small: one slow
 * clock counts as several. Too large: several count as one.
 */
const SAME_CLOCK_MS = 3_000;
/**
 * How long, in ms, and in how many responses a `Date` must be behind by a constant amount before it is of a slow clock and not of a cache.
 * Too small: a cached page counts as fresh. Too large: responses of a slow backend count as cached for longer.
 */
const STEADY_MS = 30_000;
const STEADY_ANSWERS = 5;
/**
 * Maximum number of remembered addresses, about 200 bytes each. Too small: cached responses of a list with more pages are not recognised.
 */
const MAX_ADDRESSES = 1_000;

/**
 * Creates an estimator of the ages of one API's responses. It uses the headers `Age` and `Date`. A cache passes on the `Date` of the
 * origin, so
 *
 * - a response with the same `Date` as the response to an identical request more than a second earlier is that response from a cache;
 * - the `Date` of a response that was cached for another client is behind the `Date` of other responses. A backend whose clock is slow, or
 *   was set back, looks the same at first. But its `Date` stays behind by a constant amount, while that of a cached response falls further
 *   behind. After {@link STEADY_MS} such a clock is recognised, and its responses stop counting as stale.
 */
export function answerAges(): AnswerAges {
  return new AgeEstimator();
}

interface SlowClock {
  /** Upper bound of how far the clock is ahead of the local one, in ms; negative if it is behind. */
  readonly ahead: number;
  readonly since: number;
  answers: number;
}

class AgeEstimator implements AnswerAges {
  /** Lower bound of how far the fastest clock is ahead of the local one, in ms. */
  #ahead = -Infinity;
  /** Slower clocks, the least recently seen first. */
  readonly #slowClocks: SlowClock[] = [];
  /** First response with the newest `Date` of each address, by address; the least recently requested address comes first. */
  readonly #firsts = new Map<string, DatedAnswer & { readonly lagMs: number }>();

  of(answer: DatedAnswer) {
    const dateLagMs = this.#lagOf(answer);
    const staleMs = Math.max(answer.ageMs ?? 0, dateLagMs);
    return { asOf: answer.askedAt - staleMs, staleMs, dateLagMs };
  }

  /**
   * How far the `Date` of a response is behind the `Date` of other responses, in ms. For a response that a cache repeats: its lag when it
   * was first received, plus the time since then.
   */
  #lagOf(answer: DatedAnswer): number {
    const { address, askedAt, date } = answer;
    const lagMs = this.#dateLag(answer);
    if (address === undefined || date === undefined) return lagMs;
    const known = this.#firsts.get(address);
    const first = known?.date === date ? known : { ...answer, lagMs };
    this.#firsts.delete(address);
    this.#firsts.set(address, first);
    if (this.#firsts.size > MAX_ADDRESSES) this.#firsts.delete(this.#firsts.keys().next().value!);
    const since = askedAt - first.askedAt;
    return since > first.elapsedMs + DATE_STEP_MS ? first.lagMs + since : lagMs;
  }

  #dateLag({ askedAt, elapsedMs, date }: DatedAnswer): number {
    if (date === undefined) return 0;
    const maxAhead = date + DATE_STEP_MS - askedAt;
    this.#ahead = Math.max(this.#ahead, date - elapsedMs - askedAt);
    const lag = this.#ahead - maxAhead;
    return lag <= MAX_LAG_MS || this.#isOfSteadyClock(maxAhead, askedAt) ? 0 : lag;
  }

  /**
   * Counts a response of a slow clock that is `ahead` of the local one by at most that many ms; returns whether it is known to be steady.
   */
  #isOfSteadyClock(ahead: number, now: number): boolean {
    const clocks = this.#slowClocks;
    const place = clocks.findIndex((clock) => Math.abs(clock.ahead - ahead) <= SAME_CLOCK_MS);
    const [known] = place < 0 ? [] : clocks.splice(place, 1);
    const clock = known ?? { ahead, since: now, answers: 0 };
    clock.answers += 1;
    clocks.push(clock);
    if (clocks.length > MAX_CLOCKS) clocks.shift();
    return clock.answers >= STEADY_ANSWERS && now - clock.since >= STEADY_MS;
  }
}
