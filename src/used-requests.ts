import type { AgedCount } from './ledger-record.ts';

/** By second, the end of it since 1970: requests that can have arrived by then. */
export type UsedRequests = Map<number, number>;

/** A request of so long ago is over for every quota, ms. */
const OVER_MS = 60_200;
const SECOND_MS = 1_000;

/** To the end of its second. */
export function countRequests(used: UsedRequests, at: number, times: number): void {
  const second = Math.ceil(at / SECOND_MS);
  used.set(second, (used.get(second) ?? 0) + times);
}

/** Those that may still count, by their age. */
export function requestsOf(used: UsedRequests, now: number): AgedCount[] {
  for (const second of used.keys()) {
    if (second * SECOND_MS + OVER_MS <= now) used.delete(second);
  }
  return [...used].map(([second, times]) => [Math.floor(now - second * SECOND_MS), times]);
}
