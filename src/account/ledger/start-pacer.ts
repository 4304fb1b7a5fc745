/**
 * Refill rate of the token bucket, as a multiple of the quota's rate. Slightly above 1, so that requests that were not sent during a pause
 * can be made up for. The number of requests in a window is limited elsewhere (`token-bucket.ts`).
 */
const RATE_MARGIN = 1.01;
/** Capacity of the token bucket, in requests (more at quotas of thousands a minute). The last token is reserved for polls and guests. */
const MAX_BURST = 2;
/**
 * Assumed resolution of timers, in ms. As a timer may fire this late, the pacer lets all requests that become due within this time start at
 * once.
 */
const TIMER_MS = 20;
/** Tolerance for rounding errors in the fill level of the token bucket, in requests. */
const EPSILON = 1e-6;

/** Spreads the starts of requests over time: a token bucket with a small burst, which refills slightly faster than the quota allows. */
export class StartPacer {
  readonly #perMs: number;
  readonly #burst: number;
  #level: number;
  #leveledAt = Infinity;

  /** @param capacity Maximum number of requests in a minute. */
  constructor(capacity: number) {
    this.#perMs = (RATE_MARGIN * capacity) / 60_000;
    // A large burst could use up the quota, and a successor could then send no requests for a minute.
    this.#burst = MAX_BURST + Math.floor(this.#perMs * TIMER_MS);
    this.#level = this.#burst;
  }

  /**
   * Returns the earliest time at which a request of a lane with rank `rank` may start, in ms; `now` if it may start at once. Lanes with a
   * rank above 0 leave the last request of a burst to the other lanes.
   */
  opensAt(now: number, rank: number): number {
    const missing = (rank <= 0 ? 1 : 2) - EPSILON - this.#levelAt(now);
    return missing <= 0 ? now : now + Math.ceil(missing / this.#perMs);
  }

  /** Takes a token from the bucket for a request that starts at `now` (ms): lowers the fill level by one. */
  take(now: number): void {
    this.#level = this.#levelAt(now) - 1;
    this.#leveledAt = now;
  }

  /** Returns the maximum number of requests that may start in `ms` milliseconds. */
  maxStarts(ms: number): number {
    return Math.floor(this.#perMs * ms) + this.#burst;
  }

  #levelAt(now: number): number {
    return Math.min(this.#burst, this.#level + Math.max(0, now - this.#leveledAt) * this.#perMs);
  }
}
