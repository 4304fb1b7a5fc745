/** What is known of the server's time, and of the time that it stamps records with. */
export interface ServerClock {
  /** The newest `updated_at` seen so far that `Date` has passed, in ms; where no `Date` was told, of all. */
  newest(): number | undefined;
  /**
   * Where the next window has to begin, in ms, after a scan at whose start `newest` was the newest
   * and whose first answer has been told; undefined, for where it began, if there was none.
   */
  mark(newest: number | undefined): number | undefined;
  /**
   * The latest time known, for the end of a window, in ms. Until a `Date` was told the local time counts too: what was
   * seen may be old, and an end that is too late costs nothing.
   */
  latest(localTime: number): number;
  /** The server's clock, as an answer told it. */
  tell(serverTime: number | undefined): void;
  /**
   * A page was made so many ms before it was asked for, by no poll: what changed in that time it does not show, and the next window
   * reaches back over it.
   */
  reachBack(ms: number): void;
  /** How much earlier than its mark the next window has to begin, ms: asked for once for each window. */
  takeReach(): number;
  /** The `updated_at` of records that were read; null where there is none. */
  see(updatedAt: readonly (number | null)[]): void;
}

/** The clock that stamps records may be this far behind the one that sends dates. */
const MAX_BEHIND_MS = 15 * 60_000;
const STEPS_MS = [86_400_000, 3_600_000, 60_000, 1_000];
/** How far before the server's time a stamp of that moment may be at most: behind, and cut to the day. */
export const MAX_BACK_MS = MAX_BEHIND_MS + STEPS_MS[0]!;

/**
 * Two clocks that nobody promises to agree: the server's `Date`, and the one that `updated_at` comes
 * from. A window begins at the earlier of `Date` and the newest `updated_at` seen, so that neither clock
 * opens a gap by being ahead. An `updated_at` beyond `Date` says nothing until `Date` has passed it: one
 * record stamped in the future would else take a clock that is behind for one that is not. In a quiet time
 * a window begins not further back than 15 minutes and one step of a coarse `updated_at`, or every poll would read again
 * whatever was written last. Where no `updated_at` has been seen the window stays where it is: `Date`
 * alone says nothing of the clock that stamps records. The local clock has no say in where a window begins.
 */
export function serverClock(): ServerClock {
  let date: number | undefined;
  let newest: number | undefined;
  /** The newest of those beyond `Date`; polls see the others again. */
  let ahead: number | undefined;
  let reach = 0;
  let step = STEPS_MS[0]!; // the coarsest that every time seen is a multiple of

  const see = (at: number): void => {
    if (date !== undefined && at > date) {
      ahead = Math.max(ahead ?? at, at);
      return;
    }
    newest = Math.max(newest ?? at, at);
    while (at % step !== 0) step = STEPS_MS[STEPS_MS.indexOf(step) + 1] ?? 1;
  };

  return {
    tell: (serverTime) => {
      date = serverTime ?? date;
      if (date === undefined || ahead === undefined || ahead > date) return;
      see(ahead);
      ahead = undefined;
    },
    see: (updatedAt) => {
      for (const at of updatedAt) if (at !== null) see(at);
    },
    reachBack: (ms) => void (reach = Math.max(reach, ms)),
    takeReach: () => {
      const ms = reach;
      reach = 0;
      return ms;
    },
    newest: () => newest,
    mark: (then) => {
      if (date === undefined || then === undefined) return then;
      return Math.max(Math.min(then, date), date - MAX_BEHIND_MS - step);
    },
    latest: (localTime) => Math.max(date ?? localTime, newest ?? -Infinity, ahead ?? -Infinity),
  };
}
