import { MAX_REQUEST_DELAY_MS } from './ledger-record.ts';
import type { AgedCount, TimedCount } from './ledger-record.ts';

/** Age from which a request counts against no quota, in ms: a minute, and headroom for clocks and latencies. */
const QUOTA_WINDOW_MS = 60_200;
const SECOND_MS = 1_000;

export type UsedRequests = ReturnType<typeof usedRequests>;

/** Counts the requests of the last minute by second, each by its latest possible arrival at the API, rounded up to the end of a second. */
export function usedRequests() {
  /** Number of requests in each second. The key is the end of the second, in seconds on the local clock. */
  const used = new Map<number, number>();
  const add = (at: number, times: number): void => {
    const second = Math.ceil(at / SECOND_MS);
    used.set(second, (used.get(second) ?? 0) + times);
  };
  return {
    /**
     * Records that a request ended at `at`, in ms. Without a response it may still reach the API, up to {@link MAX_REQUEST_DELAY_MS} later.
     */
    requestEnded: (at: number, isAnswered: boolean): void =>
      add(isAnswered ? at : at + MAX_REQUEST_DELAY_MS, 1),
    /** Adds requests of other processes. */
    count: (requests: readonly TimedCount[]): void =>
      requests.forEach(({ at, count }) => add(at, count)),
    /** Returns the requests that may still count against a quota, with their ages. */
    ages: (now: number): AgedCount[] => {
      for (const second of used.keys()) {
        if (second * SECOND_MS + QUOTA_WINDOW_MS <= now) used.delete(second);
      }
      return [...used].map(([second, times]) => [Math.floor(now - second * SECOND_MS), times]);
    },
  };
}
