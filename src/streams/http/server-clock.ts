/**
 * Estimate of a server's two clocks, from the answers read so far: the one of its `Date` header, and the one that stamps records
 * (`updated_at`). All times are in epoch ms.
 */
export interface ServerClock {
  /** Newest `updated_at` seen that is not later than the server's `Date`; without the header, the newest seen. Undefined before the first. */
  newest(): number | undefined;
  /** The same stamp as its record has it, without the correction of {@link ServerClock.shift}. */
  newestStamp(): number | undefined;
  /**
   * Start of the next poll window, to be asked for once `tell` was called with the first answer of the current scan. Undefined if
   * the window must stay where it is, because no `updated_at` has been seen.
   *
   * @param newest Result of `newest()` at the start of the current scan.
   * @param reach `far` for windows that look back far. Default `near`.
   */
  mark(newest: number | undefined, reach?: 'near' | 'far'): number | undefined;
  /**
   * Latest time that either clock may show, from which the end of a window is computed. Before the first `Date` the local time is
   * included: stamps seen may be old, and an end that is too late does no harm.
   */
  latest(localTime: number): number;
  /** The server's current time: the newest `Date` plus the local time passed since; never later than the server's own. Undefined before the first `Date`. */
  now(localTime: number): number | undefined;
  /**
   * Takes the server's time at the start of a request, from its answer.
   *
   * @param localTime Local time at which the answer arrived.
   */
  tell(serverTime: number | undefined, localTime?: number): void;
  /**
   * Makes the next window begin earlier, because a page that no poll read came from a cache and was `ms` old: changes of that time are
   * missing in it.
   */
  reachBack(ms: number): void;
  /** How much earlier than its mark the next window has to begin, in ms. Resets it, so call it once for each window. */
  takeReach(): number;
  /** Takes the `updated_at` of records read; null for a record without one. */
  see(updatedAt: readonly (number | null)[]): void;
  /**
   * Takes the stamps that a poll has read. The previous poll read everything up to `newest`, so a newer stamp belongs to a change made
   * just now, and its lag behind `Date` is the lag of the clock that stamps records.
   */
  rose(updatedAt: readonly (number | null)[], newest: number): void;
  /**
   * Sets the offset from stamps to date parameters, in ms: a record stamped `s` is found by the parameter `s + offset`. A negative
   * offset moves all stamps, those already seen included, that much earlier. A positive one needs no correction: windows then begin
   * early enough.
   */
  shift(offsetMs: number): void;
}

/** Largest lag of the clock that stamps records behind the one of `Date`, in ms. Too small: changes are missed. Too large: quiet polls read more records again. */
const MAX_BEHIND_MS = 15 * 60_000;
/** Largest distance of a time zone from UTC, in ms. Too small: polls miss every change of a server in such a zone. */
export const MAX_ZONE_MS = 14 * 3_600_000;
/** How much a stamp of local time falls back when daylight saving ends, in ms. */
export const DST_MS = 3_600_000;
/** Resolutions of `updated_at` that are recognised, in ms. */
const STEPS_MS = [86_400_000, 3_600_000, 60_000, 1_000];
/** Largest lag of a fresh stamp behind the server's `Date`, in ms: a slow clock and stamps cut to the day. */
export const MAX_BACK_MS = MAX_BEHIND_MS + STEPS_MS[0]!;

/**
 * Creates the estimate. A poll window begins at the earlier of `Date` and the newest `updated_at` seen, so neither clock opens a gap by
 * running ahead of the other:
 *
 * - An `updated_at` later than `Date` is ignored until `Date` has passed it. Otherwise a single record stamped in the future
 *   would hide that the clock of stamps runs behind.
 * - In a quiet time the window begins at most 15 minutes and one step of a coarse `updated_at` before `Date`. Otherwise every poll would
 *   read the records written last again.
 * - Before the first `updated_at` the window stays where it is: `Date` says nothing about the clock of stamps.
 * - The local clock does not influence where a window begins.
 *
 * Stamps may be local times behind UTC, so a change made just now may carry a stamp that is hours old. The smallest lag of any stamp behind
 * `Date` is an upper bound of that offset. Windows that reach `far` begin that much earlier, plus an hour for the end of daylight saving;
 * `near` windows do so once a poll has read a fresh change with such a lag (`rose`).
 */
export function serverClock(): ServerClock {
  let date: number | undefined;
  let newest: number | undefined;
  /** Newest `updated_at` later than `Date`. Only one is kept: polls read the records of the others again. */
  let ahead: number | undefined;
  let reachMs = 0;
  /** Resolution of `updated_at`: the coarsest step that all stamps seen are multiples of. */
  let step = STEPS_MS[0]!;
  /** Local time at which `date` arrived. */
  let toldAt: number | undefined;
  let offset = 0;
  /** Smallest lag of a stamp behind `Date`, in ms. `far`: of all stamps. `near`: of fresh changes read by polls. */
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
  /** Estimated time-zone lag of stamps behind UTC, in ms; 0 without evidence of one. */
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
