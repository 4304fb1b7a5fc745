/** What is known of the server's time, and of the time that it stamps records with. */
export interface ServerClock {
  /** The newest `updated_at` seen so far that `Date` has passed, in ms; where no `Date` was told, of all. */
  newest(): number | undefined;
  /** The same as it stands in its record. */
  newestStamp(): number | undefined;
  /**
   * Where the next window has to begin, in ms, after a scan at whose start `newest` was the newest
   * and whose first answer has been told; undefined, for where it began, if there was none.
   */
  mark(newest: number | undefined, reach?: 'near' | 'far'): number | undefined;
  /**
   * The latest time known, for the end of a window, in ms. Until a `Date` was told the local time counts too: what was
   * seen may be old, and an end that is too late costs nothing.
   */
  latest(localTime: number): number;
  /** The server's current time: the newest `Date` plus the local time passed since; never later than the server's own. Undefined before the first `Date`. */
  now(localTime: number): number | undefined;
  /** Takes the server's time at the start of a request from its answer. `localTime`: when it arrived, ms. */
  tell(serverTime: number | undefined, localTime?: number): void;
  /**
   * A page was made so many ms before it was asked for, by no poll: what changed in that time it does not show, and the next window
   * reaches back over it.
   */
  reachBack(ms: number): void;
  /** How much earlier than its mark the next window has to begin, ms: asked for once for each window. */
  takeReach(): number;
  /** The `updated_at` of records that were read; null where there is none. */
  see(updatedAt: readonly (number | null)[]): void;
  /**
   * Takes the stamps that a poll has read. The poll before it had read everything up to `newest`, so a newer stamp is that of a
   * change of this moment, and its lag is that of the clock that stamps records.
   */
  rose(updatedAt: readonly (number | null)[], newest: number): void;
  /**
   * Sets the offset from stamps to date parameters, in ms: a record stamped `s` is found by the parameter `s + offset`. Stamps
   * count as that much earlier from then on (an offset above 0 changes nothing: windows then begin early enough as they are).
   */
  shift(offsetMs: number): void;
}

/** The clock that stamps records may be this far behind the one that sends dates. */
const MAX_BEHIND_MS = 15 * 60_000;
/** No time zone is further from UTC than 14 hours. Smaller: polls miss every change of a server in such a zone. */
export const MAX_ZONE_MS = 14 * 3_600_000;
/** A stamp of local time falls back by this much when daylight saving ends. */
export const DST_MS = 3_600_000;
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
 *
 * Stamps may be local times behind UTC, so that a change of this moment carries a stamp hours old. The smallest lag of any stamp
 * behind `Date` is an upper bound for that: windows that reach `far` begin that much earlier, and an hour for the end of daylight
 * saving; the others do so once a poll has read a change at such a lag (`rose`).
 */
export function serverClock(): ServerClock {
  let date: number | undefined;
  let newest: number | undefined;
  /** The newest of those beyond `Date`; polls see the others again. */
  let ahead: number | undefined;
  let reachMs = 0;
  let step = STEPS_MS[0]!; // the coarsest that every time seen is a multiple of
  /** Local time at which `date` arrived. */
  let toldAt: number | undefined;
  let offset = 0;
  /** The smallest lag of a stamp behind `Date`, in ms: of all, and of changes that polls read as they happened. */
  const lag = { far: Infinity, near: Infinity };

  /** Correction of each stamp in ms: a negative offset, and an hour more because a zone with daylight saving changes it twice a year. */
  const earlier = () => (offset < 0 ? offset - DST_MS : 0);
  const see = (at: number): void => {
    if (date !== undefined && at > date) {
      ahead = Math.max(ahead ?? at, at);
      return;
    }
    newest = Math.max(newest ?? at, at);
    if (date !== undefined) lag.far = Math.min(lag.far, date - at);
    const stamp = at - earlier();
    while (stamp % step !== 0) step = STEPS_MS[STEPS_MS.indexOf(step) + 1] ?? 1;
  };
  /** How far behind UTC the clock that stamps records may be because of its time zone, in ms; 0 where nothing speaks for one. */
  const zoneOf = (reach: 'near' | 'far'): number => {
    const behindMs = (reach === 'far' ? lag.far : lag.near) - Math.max(0, offset);
    const isZone = behindMs > MAX_BEHIND_MS && behindMs < Infinity;
    return Math.max(isZone ? Math.min(behindMs, MAX_ZONE_MS) : 0, -offset);
  };

  return {
    tell: (serverTime, localTime) => {
      if (serverTime !== undefined) toldAt = localTime;
      date = serverTime ?? date;
      if (date === undefined || ahead === undefined || ahead > date) return;
      see(ahead);
      ahead = undefined;
    },
    see: (updatedAt) => {
      for (const at of updatedAt) if (at !== null) see(at + earlier());
    },
    rose: (updatedAt, before) => {
      for (const stamp of updatedAt) {
        if (date === undefined || stamp === null) continue;
        const at = stamp + earlier();
        if (at > before && at <= date) lag.near = Math.min(lag.near, date - at);
      }
    },
    shift: (offsetMs) => {
      const before = earlier();
      offset = offsetMs;
      const more = earlier() - before;
      if (newest !== undefined) newest += more;
      if (ahead !== undefined) ahead += more;
      [lag.far, lag.near] = [Math.max(0, lag.far - more), Math.max(0, lag.near - more)];
    },
    reachBack: (ms) => void (reachMs = Math.max(reachMs, ms)),
    takeReach: () => {
      const ms = reachMs;
      reachMs = 0;
      return ms;
    },
    newest: () => newest,
    newestStamp: () => (newest === undefined ? undefined : newest - earlier()),
    mark: (then, reach = 'near') => {
      if (date === undefined || then === undefined) return then;
      const zone = zoneOf(reach);
      const slack = zone > 0 ? DST_MS : 0;
      return Math.max(Math.min(then - slack, date), date - MAX_BEHIND_MS - zone - slack - step);
    },
    now: (localTime) => {
      if (date === undefined || toldAt === undefined) return date;
      return date + Math.max(0, localTime - toldAt);
    },
    latest: (localTime) => Math.max(date ?? localTime, newest ?? -Infinity, ahead ?? -Infinity),
  };
}
