/**
 * Estimates a server's two clocks from the responses read so far: the clock of its `Date` header, and the clock that sets the stamps of
 * records (`updated_at`). All times are in epoch ms.
 */
export interface ServerClock {
  /**
   * Newest `updated_at` of the records read so far that is not later than the server's `Date`; without that header, the newest of all.
   * Undefined before the first `updated_at`.
   */
  newest(): number | undefined;
  /**
   * The `updated_at` from which {@link ServerClock.newest} is computed, as its record has it, without the correction of
   * {@link ServerClock.shift}.
   */
  newestStamp(): number | undefined;
  /**
   * Returns the time at which the next poll window begins. Call it after `tell` was called with the first response of the current scan.
   * Undefined if the window must not advance, because no `updated_at` has been seen.
   *
   * @param newest Result of `newest()` at the start of the current scan.
   * @param reach `far` for the windows of lookback polls. Default `near`.
   */
  mark(newest: number | undefined, reach?: 'near' | 'far'): number | undefined;
  /**
   * Returns the latest time that either of the server's clocks may show; the end of a poll window is computed from it. Before the first
   * `Date` the local time is included: the stamps of the records read may be old, and a window that ends too late does no harm.
   */
  latest(localTime: number): number;
  /** Lower bound of the server's current time: the newest `Date` plus the local time passed since. Undefined before the first `Date`. */
  now(localTime: number): number | undefined;
  /**
   * Records the server's time at the start of a request, as its response shows it.
   *
   * @param localTime Local time at which the response arrived; {@link ServerClock.now} counts on from it.
   */
  tell(serverTime: number | undefined, localTime?: number): void;
  /**
   * Makes the next poll window begin `ms` earlier. Call it when another scan than a poll has read a page that came from a cache and was
   * `ms` old: that page lacks the changes of that time.
   */
  reachBack(ms: number): void;
  /**
   * Returns how much earlier than {@link ServerClock.mark} says the next poll window must begin, in ms, as {@link ServerClock.reachBack}
   * has requested, and resets that value to 0. Call it once for each window.
   */
  takeReach(): number;
  /** Records the `updated_at` of records that were read; null for a record without one. */
  see(updatedAt: readonly (number | null)[]): void;
  /**
   * Records the `updated_at` of records that a poll has read. The previous poll read everything up to `newest`, so a newer stamp belongs to
   * a recent change, and its lag behind `Date` is the lag of the clock that sets stamps.
   */
  rose(updatedAt: readonly (number | null)[], newest: number): void;
  /**
   * Sets by how many ms the API's date parameters differ from the stamps of records: a record with `updated_at` `s` is found by the
   * parameter `s + offsetMs`. If the offset is negative, this estimate takes every stamp, including those already seen, as that much
   * earlier, and as another hour earlier for daylight saving, so that poll windows begin early enough. If it is positive, they do so
   * without a correction.
   */
  shift(offsetMs: number): void;
}

/**
 * Largest lag of the clock that sets `updated_at` behind the clock of `Date`, in ms. Too small: changes are missed. Too large: polls of a
 * quiet list read more records again.
 */
const MAX_BEHIND_MS = 15 * 60_000;
/** Largest UTC offset of a time zone, in ms. Too small: polls miss every change of a server whose stamps are local times in such a zone. */
export const MAX_ZONE_MS = 14 * 3_600_000;
/** How far local time goes back when daylight saving ends, in ms. */
export const DST_MS = 3_600_000;
/** Resolutions of `updated_at` that are recognised, in ms, the coarsest first: day, hour, minute, second. */
const STEPS_MS = [86_400_000, 3_600_000, 60_000, 1_000];
/** Largest lag of a new stamp behind the server's `Date`, in ms: a slow clock plus stamps truncated to the day. */
export const MAX_BACK_MS = MAX_BEHIND_MS + STEPS_MS[0]!;

/**
 * Creates an estimate of the server's clocks. A poll window begins at the earlier of `Date` and the newest `updated_at` seen, so that
 * neither clock causes missed changes by running ahead of the other:
 *
 * - An `updated_at` later than `Date` is ignored until `Date` has passed it. Otherwise a single record stamped in the future
 *   would hide that the clock of stamps runs behind.
 * - While nothing changes, the window begins at most 15 minutes plus the resolution of `updated_at` before `Date`. Otherwise every poll
 *   would read the most recently written records again.
 * - Before the first `updated_at` the window does not advance: `Date` says nothing about the clock of stamps.
 * - The local clock does not influence where a window begins.
 *
 * Stamps may be local times behind UTC, so a change made just now may have a stamp that is hours old. The smallest lag of any stamp behind
 * `Date` is an upper bound of that time-zone offset. Windows with reach `far` begin that much earlier, plus an hour for the end of daylight
 * saving; windows with reach `near` do so once a poll has read a new change with such a lag (`rose`).
 */
export function serverClock(): ServerClock {
  let date: number | undefined;
  let newest: number | undefined;
  /** Newest of the `updated_at` values that are later than `Date`; the others need not be stored, as polls read their records again. */
  let ahead: number | undefined;
  let reachMs = 0;
  /** Resolution of `updated_at`, in ms: the coarsest step that all stamps seen are multiples of. */
  let step = STEPS_MS[0]!;
  /** Local time, in ms, at which the response with the newest `Date` header arrived. */
  let toldAt: number | undefined;
  let offset = 0;
  /** Smallest lag of a stamp behind `Date`, in ms. `far`: among all stamps. `near`: among new changes read by polls. */
  const lag = { far: Infinity, near: Infinity };

  /**
   * Correction that is added to the stamp of each record, in ms: the offset of {@link ServerClock.shift} if it is negative, less an hour
   * for zones with daylight saving; else 0.
   */
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
