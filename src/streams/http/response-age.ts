/** Upper bound of the age of a response's content. */
export interface AnswerAge {
  /** Earliest time at which the server can have read the response's content from its database, in ms on the local clock. */
  readonly asOf: number;
  /**
   * Upper bound of how old the content was when the request was sent, in ms, according to response headers; 0 if the response does not
   * come from a cache.
   */
  readonly staleMs: number;
}

/**
 * Longest lag that a read replica is assumed to have, in ms. If it is too small, a lagging replica causes false events. If it is too large,
 * a record that really went back to an earlier state is published late.
 */
export const MAX_LAG_MS = 10_000;

/**
 * Whether a response is too old to come from a lagging database replica ({@link MAX_LAG_MS}), and so comes from a cache. False if its age
 * is unknown.
 */
export function isStale(age: AnswerAge | undefined): boolean {
  return age !== undefined && age.staleMs > MAX_LAG_MS;
}

/** Combines the ages of several responses: the earliest `asOf` and the largest `staleMs`. Undefined if no age is known. */
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
  /** The `Date` header in epoch ms; undefined if it is missing or malformed. */
  readonly date: number | undefined;
  /** The `Age` header in ms; undefined if it is missing or not plausible. */
  readonly ageMs: number | undefined;
  /**
   * Address of the request. Responses to the same address are compared to detect copies from a cache. Undefined (the default) if the
   * request is not repeated, such as one for a date window.
   */
  readonly address?: string | undefined;
}

const DATE_STEP_MS = 1_000;
/**
 * Maximum number of slow server clocks that are remembered. If it is too small, responses of servers with other slow clocks count as
 * cached.
 */
const MAX_CLOCKS = 4;
/**
 * Maximum difference, in ms, between two measurements of one server clock (how far it is ahead of the local clock). If it is too small, one
 * slow clock counts as several. If it is too large, several slow clocks count as one.
 */
const SAME_CLOCK_MS = 3_000;
/**
 * How long, in ms, `Date` headers must be behind by the same amount before a slow server clock is assumed, and not a cache. If it is too
 * small, a cached page counts as fresh. If it is too large, responses of a server with a slow clock count as cached for longer.
 */
const STEADY_MS = 30_000;
const STEADY_ANSWERS = 5;
/**
 * Maximum number of request addresses whose responses are remembered, about 200 bytes each. If it is too small, cached responses are not
 * recognised in lists with more pages.
 */
const MAX_ADDRESSES = 1_000;

/**
 * Estimates the ages of one API's responses by their headers `Age` and `Date`. A cache passes on the `Date` of the origin:
 *
 * - A response comes from a cache if it has the same `Date` as an earlier response to an identical request, and was requested more than a
 *   second after that response had arrived.
 * - A `Date` that is behind the `Date` of other responses shows a cached response or a slow server clock. A slow clock stays behind by a
 *   constant amount. It is recognised after 30 s and five responses; its responses do not count as stale any more.
 */
export class AnswerAges {
  /** Lower bound of how far the fastest server clock is ahead of the local clock, in ms; negative if it is behind. */
  #ahead = -Infinity;
  /**
   * Suspected slow server clocks, the least recently seen first. `ahead`: upper bound of how far the clock is ahead of the local clock, in
   * ms; negative if it is behind. `since`: when the request for the first response with this clock was sent, in ms on the local clock.
   * `answers`: number of responses with this clock.
   */
  readonly #slowClocks: { readonly ahead: number; readonly since: number; answers: number }[] = [];
  /**
   * For each request address, the first response that had the same `Date` header as the latest one. The later responses with this `Date`
   * may be copies of the first from a cache. The least recently requested address comes first.
   */
  readonly #firsts = new Map<string, DatedAnswer & { readonly lagMs: number }>();

  /**
   * Returns the age of a response, computed from its headers and those of earlier responses. Call it once for each response. `dateLagMs`:
   * how far the response's `Date` is behind the `Date` of other responses, in ms; 0 if a lagging replica or a slow clock explains the
   * difference.
   */
  of(answer: DatedAnswer): AnswerAge & { readonly dateLagMs: number } {
    const dateLagMs = this.#lagOf(answer);
    const staleMs = Math.max(answer.ageMs ?? 0, dateLagMs);
    return { asOf: answer.askedAt - staleMs, staleMs, dateLagMs };
  }

  /**
   * Returns how far the `Date` of a response is behind that of the server's other responses, in ms; 0 if a lagging replica or a slow server
   * clock explains the difference.
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
    // A cached copy: the lag of the earlier response, plus the time between the two requests.
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
   * Counts a response whose `Date` header is behind that of other responses. Returns whether a slow server clock, and not a cache, is the
   * reason: at least {@link STEADY_ANSWERS} responses, over at least {@link STEADY_MS}, were behind by the same amount.
   *
   * @param ahead Upper bound of how far the server clock is ahead of the local clock, in ms; negative if it is behind.
   * @param now When the request was sent, in ms on the local clock.
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
