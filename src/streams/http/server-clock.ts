/**
 * Estimates a server's two clocks from the responses read so far: the clock of its `Date` header, and the clock that sets the stamps of
 * records (`updated_at`). All times are in epoch ms.
 */
export interface ServerClock {
  /**
   * Newest `updated_at` of the records read so far that is not later than the server's `Date`; without that header, the newest of all.
   * Undefined before the first.
   */
  newest(): number | undefined;
  /** The stamp of {@link ServerClock.newest} as its record has it, without the correction of {@link ServerClock.shift}. */
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
   * Latest time that either of the server's clocks may show. Before the first `Date` the local time is included: a window that ends too
   * late does no harm.
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
  /** Makes the next poll window begin `ms` earlier, because another scan has read a cached page that lacks the changes of that time. */
  reachBack(ms: number): void;
  /** Returns how much earlier than {@link ServerClock.mark} the next window must begin, in ms, and resets that to 0. */
  takeReach(): number;
  /** Records the `updated_at` of records that were read. */
  see(updatedAt: readonly (number | null)[]): void;
  /**
   * Records the `updated_at` of records that a poll has read. Stamps after `newest`, up to which the previous poll read everything, belong
   * to recent changes, so their lag behind `Date` is that of the clock of stamps.
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
 * Largest lag of the clock of stamps behind that of `Date`, in ms. Too small: changes are missed. Too large: polls of a quiet list read
 * more records again.
 */
const MAX_BEHIND_MS = 15 * 60_000;
/** Largest UTC offset of a time zone, in ms. Too small: polls miss changes of a server whose stamps are local times. */
export const MAX_ZONE_MS = 14 * 3_600_000;
/** How far local time goes back when daylight saving ends, in ms. */
export const DST_MS = 3_600_000;
/** Resolutions of stamps that are recognised, in ms: day, hour, minute, second. */
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
  return new EstimatedClock();
}

class EstimatedClock implements ServerClock {
  #date: number | undefined;
  /** Local time when the newest `Date` arrived. */
  #dateSeenAt: number | undefined;
  #newest: number | undefined;
  /** Newest stamp that is later than `Date`; the others need not be stored, as polls read their records again. */
  #ahead: number | undefined;
  #reachMs = 0;
  /** Coarsest step in ms that all stamps seen are multiples of. */
  #stepMs = STEPS_MS[0]!;
  #offsetMs = 0;
  /** Smallest lag of a stamp behind `Date`, in ms, among all stamps (`far`) or among new changes read by polls (`near`). */
  readonly #lag = { far: Infinity, near: Infinity };

  newest(): number | undefined {
    return this.#newest;
  }

  newestStamp(): number | undefined {
    return this.#newest === undefined ? undefined : this.#newest - this.#correctionMs;
  }

  mark(newest: number | undefined, reach: 'near' | 'far' = 'near'): number | undefined {
    if (this.#date === undefined || newest === undefined) return newest;
    const zoneMs = this.#zoneMs(reach);
    const slackMs = zoneMs > 0 ? DST_MS : 0;
    const earliest = this.#date - MAX_BEHIND_MS - zoneMs - slackMs - this.#stepMs;
    return Math.max(Math.min(newest - slackMs, this.#date), earliest);
  }

  latest(localTime: number): number {
    const date = this.#date ?? localTime;
    return Math.max(date, this.#newest ?? -Infinity, this.#ahead ?? -Infinity);
  }

  now(localTime: number): number | undefined {
    if (this.#date === undefined || this.#dateSeenAt === undefined) return this.#date;
    return this.#date + Math.max(0, localTime - this.#dateSeenAt);
  }

  tell(serverTime: number | undefined, localTime?: number): void {
    if (serverTime !== undefined) this.#dateSeenAt = localTime;
    this.#date = serverTime ?? this.#date;
    if (this.#date === undefined || this.#ahead === undefined || this.#ahead > this.#date) return;
    this.#see(this.#ahead);
    this.#ahead = undefined;
  }

  reachBack(ms: number): void {
    this.#reachMs = Math.max(this.#reachMs, ms);
  }

  takeReach(): number {
    const ms = this.#reachMs;
    this.#reachMs = 0;
    return ms;
  }

  see(updatedAt: readonly (number | null)[]): void {
    const correctionMs = this.#correctionMs;
    for (const stamp of updatedAt) if (stamp !== null) this.#see(stamp + correctionMs);
  }

  rose(updatedAt: readonly (number | null)[], newest: number): void {
    if (this.#date === undefined) return;
    const correctionMs = this.#correctionMs;
    for (const stamp of updatedAt) {
      if (stamp === null) continue;
      const at = stamp + correctionMs;
      if (at > newest && at <= this.#date) {
        this.#lag.near = Math.min(this.#lag.near, this.#date - at);
      }
    }
  }

  shift(offsetMs: number): void {
    const before = this.#correctionMs;
    this.#offsetMs = offsetMs;
    const moreMs = this.#correctionMs - before;
    if (this.#newest !== undefined) this.#newest += moreMs;
    if (this.#ahead !== undefined) this.#ahead += moreMs;
    this.#lag.far = Math.max(0, this.#lag.far - moreMs);
    this.#lag.near = Math.max(0, this.#lag.near - moreMs);
  }

  /** Correction of each stamp, in ms: a negative offset, less an hour for daylight saving; else 0. */
  get #correctionMs(): number {
    return this.#offsetMs < 0 ? this.#offsetMs - DST_MS : 0;
  }

  /** Records a corrected stamp. */
  #see(at: number): void {
    if (this.#date !== undefined && at > this.#date) {
      this.#ahead = Math.max(this.#ahead ?? at, at);
      return;
    }
    this.#newest = Math.max(this.#newest ?? at, at);
    if (this.#date !== undefined) this.#lag.far = Math.min(this.#lag.far, this.#date - at);
    const stamp = at - this.#correctionMs;
    while (stamp % this.#stepMs !== 0) {
      this.#stepMs = STEPS_MS[STEPS_MS.indexOf(this.#stepMs) + 1] ?? 1;
    }
  }

  /** Estimated time-zone lag of stamps behind UTC, in ms; 0 without evidence of one. */
  #zoneMs(reach: 'near' | 'far'): number {
    const behindMs = this.#lag[reach] - Math.max(0, this.#offsetMs);
    const isZone = behindMs > MAX_BEHIND_MS && behindMs < Infinity;
    return Math.max(isZone ? Math.min(behindMs, MAX_ZONE_MS) : 0, -this.#offsetMs);
  }
}
