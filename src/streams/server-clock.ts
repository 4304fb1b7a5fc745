/** What is known of the server's time, and of the time that it stamps records with. */
export interface ServerClock {
  /** The newest `updated_at` seen so far, in ms. */
  newest(): number | undefined;
  /**
   * Where the next window has to begin, in ms, after a scan at whose start `newest` was the newest
   * and whose first answer has been told; undefined, for where it began, if there was none.
   */
  mark(newest: number | undefined): number | undefined;
  /** The latest time known, for the end of a window; undefined if nothing is known. */
  latest(): number | undefined;
  /** The server's clock, as an answer told it. */
  tell(serverTime: number | undefined): void;
  /** The `updated_at` of records that were read; null where there is none. */
  see(updatedAt: readonly (number | null)[]): void;
}

/** The clock that stamps records may be this far behind the one that sends dates. */
export const MOST_BEHIND_MS = 15 * 60_000;
const STEPS_MS = [86_400_000, 3_600_000, 60_000, 1_000];

/**
 * Two clocks that nobody promises to agree: the server's `Date`, and the one that `updated_at` comes
 * from. A window begins at the earlier of `Date` and the newest `updated_at` seen, so that neither a
 * clock that is ahead nor a record stamped in the future opens a gap; but, in a quiet time, not
 * further back than 15 minutes and one step of a coarse `updated_at`, or every poll would read again
 * whatever was written last. Where no `updated_at` has been seen the window stays where it is: `Date`
 * alone says nothing of the clock that stamps records. The local clock has no say.
 */
export function serverClock(): ServerClock {
  let date: number | undefined;
  let newest: number | undefined;
  let step = STEPS_MS[0]!; // the coarsest that every time seen is a multiple of

  return {
    tell: (serverTime) => {
      date = serverTime ?? date;
    },
    see: (updatedAt) => {
      for (const at of updatedAt) {
        if (at === null) continue;
        if (newest === undefined || at > newest) newest = at;
        while (at % step !== 0) step = STEPS_MS[STEPS_MS.indexOf(step) + 1] ?? 1;
      }
    },
    newest: () => newest,
    mark: (then) => {
      if (date === undefined || then === undefined) return then;
      return Math.max(Math.min(then, date), date - MOST_BEHIND_MS - step);
    },
    latest: () => {
      if (date === undefined || newest === undefined) return date ?? newest;
      return Math.max(date, newest);
    },
  };
}
