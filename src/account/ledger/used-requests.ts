import { MAX_REQUEST_DELAY_MS, WINDOW_MS } from './ledger-record.ts';
import type { AgedCount, TimedCount } from './ledger-record.ts';

const SECOND_MS = 1_000;

export type UsedRequests = ReturnType<typeof usedRequests>;

/**
 * Creates a counter of the requests of the last minute, grouped by second. A request is counted in the second in which it may have reached
 * the API at the latest.
 */
export function usedRequests() {
  /** Number of requests in each second. The key is the end of the second, in seconds on the local clock. */
  const used = new Map<number, number>();
  const add = (at: number, times: number): void => {
    const second = Math.ceil(at / SECOND_MS);
    used.set(second, (used.get(second) ?? 0) + times);
  };
  return {
    /**
     * Counts one request that ended at the time `at`, in ms. If the request may still reach the API (`isAnswered` is false), it counts as
     * ended {@link MAX_REQUEST_DELAY_MS} later.
     */
    requestEnded: (at: number, isAnswered: boolean): void =>
      add(isAnswered ? at : at + MAX_REQUEST_DELAY_MS, 1),
    /** Counts requests that other processes sent, in the second that contains the time `at` of each. */
    count: (requests: readonly TimedCount[]): void =>
      requests.forEach(({ at, count }) => add(at, count)),
    /** Returns the requests that may still count against a quota at the time `now`, as pairs of age in ms and number. */
    ages: (now: number): AgedCount[] => {
      for (const second of used.keys()) {
        if (second * SECOND_MS + WINDOW_MS <= now) used.delete(second);
      }
      return [...used].map(([second, times]) => [Math.floor(now - second * SECOND_MS), times]);
    },
  };
}
