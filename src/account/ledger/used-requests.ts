import { LATE_MS } from './ledger-record.ts';
import type { AgedCount, TimedCount } from './ledger-record.ts';

/** The requests of the last minute, by second: as late as they can have arrived, and to the end of it. */
export interface UsedRequests {
  /** One is over; if it was given up, it may still be on its way. */
  readonly end: (at: number, isAnswered: boolean) => void;
  /** Those of others. */
  readonly count: (requests: readonly TimedCount[]) => void;
  /** Those that may still count, by their age. */
  readonly ages: (now: number) => AgedCount[];
}

/** A request of so long ago is over for every quota, ms. */
const OVER_MS = 60_200;
const SECOND_MS = 1_000;

export function usedRequests(): UsedRequests {
  /** By the end of the second, since 1970. */
  const used = new Map<number, number>();
  const add = (at: number, times: number): void => {
    const second = Math.ceil(at / SECOND_MS);
    used.set(second, (used.get(second) ?? 0) + times);
  };
  return {
    end: (at, isAnswered) => add(isAnswered ? at : at + LATE_MS, 1),
    count: (requests) => requests.forEach(({ at, count }) => add(at, count)),
    ages: (now) => {
      for (const second of used.keys()) {
        if (second * SECOND_MS + OVER_MS <= now) used.delete(second);
      }
      return [...used].map(([second, times]) => [Math.floor(now - second * SECOND_MS), times]);
    },
  };
}
