/** Spreads the starts of requests over time, as a token bucket with a small burst. */
export interface StartPacer {
  /** Returns the time from which a request may start, in ms; `now` if it may start at once. `rank` is the rank of the request's lane. */
  readonly opensAt: (now: number, rank: number) => number;
  /** Records that a request has started. */
  readonly take: (now: number) => void;
  /** Returns the maximum number of requests that may start in `ms` milliseconds. */
  readonly maxStarts: (ms: number) => number;
}

/** Factor by which the pacer is faster than the quota, so that quota left unused by a pause can be used later. */
const RATE_MARGIN = 1.01;
/** Number of requests that may start at once: one of any lane, and one reserved for a poll. */
const MAX_BURST = 2;
/** Assumed resolution of timers, in ms. The burst grows by the number of requests that are due in this time. */
const TIMER_MS = 20;
/** Tolerance for rounding errors in the fill level of the token bucket, in requests. */
const EPSILON = 1e-6;

/**
 * Paces requests to slightly more than their quota. A burst that uses up the quota would leave a successor nothing for a minute. Only a
 * lane of rank 0 (polls) or less may use the last request of a burst.
 *
 * @param capacity Maximum number of requests in a minute.
 */
export function startPacer(capacity: number): StartPacer {
  const perMs = (RATE_MARGIN * capacity) / 60_000;
  const burst = MAX_BURST + Math.floor(perMs * TIMER_MS);
  let level = burst;
  let leveledAt = -Infinity;

  const levelAt = (now: number) =>
    leveledAt === -Infinity ? level : Math.min(burst, level + Math.max(0, now - leveledAt) * perMs);
  return {
    opensAt: (now, rank) => {
      const missing = (rank <= 0 ? 1 : 2) - EPSILON - levelAt(now);
      return missing <= 0 ? now : now + Math.ceil(missing / perMs);
    },
    take: (now) => {
      level = levelAt(now) - 1;
      leveledAt = now;
    },
    maxStarts: (ms) => Math.floor(perMs * ms) + burst,
  };
}
