/**
 * Maximum number of ms by which the clock that sets modification times (stamps) is assumed to be behind the clock of the `Date` header. If
 * it is too small, changes are missed. If it is too large, each poll of a quiet list reads more unchanged records.
 */
const MAX_BEHIND_MS = 15 * 60_000;
/**
 * Largest difference between UTC and the local time of a time zone, in ms. If it is too small, polls miss changes of a server whose stamps
 * are local times.
 */
export const MAX_ZONE_MS = 14 * 3_600_000;
/** How far local clocks are set back when daylight saving ends, in ms. */
export const DST_MS = 3_600_000;
/**
 * Resolutions of stamps that are distinguished, in ms: day, hour, minute, second. Stamps in steps of 15 minutes count as precise to the
 * minute, stamps with fractions of a second as precise to the millisecond.
 */
const STEPS_MS = [86_400_000, 3_600_000, 60_000, 1_000];
/**
 * How far the modification time of a record that has just changed may be behind the server's `Date` header, in ms: 15 minutes for a slow
 * clock, plus a day, as some APIs truncate modification times to the day.
 */
export const MAX_BACK_MS = MAX_BEHIND_MS + STEPS_MS[0]!;

/**
 * Estimates a server's two clocks from the responses read so far: the clock of its `Date` header, and the clock that sets the stamps of
 * records (their modification times). All times are in epoch ms.
 *
 * A poll window begins at the earlier of `Date` and the newest stamp seen, so that no change is missed whichever clock is ahead. Rules:
 *
 * - A stamp later than `Date` is ignored until `Date` has passed it.
 * - A window begins at most 15 minutes plus the resolution of stamps before `Date`. Without this limit, every poll would read the most
 *   recently changed records again while nothing changes.
 * - Before the first stamp the window does not advance: `Date` says nothing about the clock of stamps.
 *
 * Stamps may be local times, hours behind UTC. Therefore the smallest lag of a stamp behind `Date` is measured. If it is more than 15
 * minutes, windows begin an hour earlier, as daylight saving may end, and the limit above grows by that hour and the lag. These stamps are
 * measured:
 *
 * - for windows of lookback polls (`reach` `far`): all stamps;
 * - for windows of polls for new changes (`near`): the stamps of new changes that polls have read.
 */
export class ServerClock {
  #date: number | undefined;
  /** When the last response that shows the server's time arrived, in ms on the local clock. */
  #dateSeenAt: number | undefined;
  #newest: number | undefined;
  /**
   * Newest stamp seen that is later than the server's newest `Date`, in epoch ms, corrected by `#correctionMs`; undefined if there is none.
   * Once `Date` has passed this stamp, the stamp becomes `#newest`.
   */
  #ahead: number | undefined;
  #reachMs = 0;
  /**
   * Resolution of the modification times seen so far, in ms: the largest value in `STEPS_MS` that divides each of them, or 1 if none does.
   */
  #stepMs = STEPS_MS[0]!;
  #offsetMs = 0;
  /**
   * Smallest lag of a stamp (modification time of a record) behind the `Date` header, in ms. `far` is the smallest among all stamps, `near`
   * among those of recent changes that polls have read.
   */
  readonly #lag = { far: Infinity, near: Infinity };

  /**
   * Returns the newest modification time of the records read so far, in epoch ms, with the correction of {@link ServerClock.shift}. Times
   * later than the server's newest `Date` do not count. Undefined if there is none.
   */
  newest(): number | undefined {
    return this.#newest;
  }

  /** Newest modification time as the record states it: {@link ServerClock.newest} without the correction of {@link ServerClock.shift}. */
  newestStamp(): number | undefined {
    return this.#newest === undefined ? undefined : this.#newest - this.#correctionMs;
  }

  /**
   * Returns the begin of the next poll window, in epoch ms; the caller has to subtract the result of {@link ServerClock.takeReach}.
   * Undefined if the window must not advance. Call it after `tell` was called for the first response of the current scan.
   *
   * @param newest Result of `newest()` at the start of the current scan.
   * @param reach `far` for the windows of lookback polls. Default `near`.
   */
  mark(newest: number | undefined, reach: 'near' | 'far' = 'near'): number | undefined {
    if (this.#date === undefined || newest === undefined) return newest;
    const zoneMs = this.#zoneMs(reach);
    const slackMs = zoneMs > 0 ? DST_MS : 0;
    const earliest = this.#date - MAX_BEHIND_MS - zoneMs - slackMs - this.#stepMs;
    return Math.max(Math.min(newest - slackMs, this.#date), earliest);
  }

  /**
   * Returns the latest time that the server has shown, in epoch ms, in a `Date` header or in a stamp. Before the first `Date` header,
   * `localTime` is used in its place.
   */
  latest(localTime: number): number {
    const date = this.#date ?? localTime; // it may be fast, but a poll window that ends too late does no harm
    return Math.max(date, this.#newest ?? -Infinity, this.#ahead ?? -Infinity);
  }

  /**
   * Returns a lower bound of the server's current time, in epoch ms: the server's time that the last response showed, plus the local time
   * that has passed since. Undefined before the first response that shows the server's time. `localTime`: the current time of the local
   * clock, in ms.
   */
  now(localTime: number): number | undefined {
    if (this.#date === undefined || this.#dateSeenAt === undefined) return this.#date;
    return this.#date + Math.max(0, localTime - this.#dateSeenAt);
  }

  /**
   * Updates the estimate of the server's clock with the server's time that a response shows.
   *
   * @param serverTime Lower bound of the server's time when it read the response's records, in epoch ms. Undefined: nothing is changed.
   * @param localTime Local time at which the response arrived, in ms; {@link ServerClock.now} counts on from it.
   */
  tell(serverTime: number | undefined, localTime?: number): void {
    if (serverTime !== undefined) this.#dateSeenAt = localTime;
    this.#date = serverTime ?? this.#date;
    if (this.#date === undefined || this.#ahead === undefined || this.#ahead > this.#date) return;
    this.#see(this.#ahead);
    this.#ahead = undefined;
  }

  /**
   * Makes the next poll window begin `ms` earlier, because another scan has read a page from a cache that lacks the changes of the last
   * `ms`.
   */
  reachBack(ms: number): void {
    this.#reachMs = Math.max(this.#reachMs, ms);
  }

  /**
   * Returns how many ms earlier than the result of {@link ServerClock.mark} the next poll window has to begin: the largest `ms` passed to
   * {@link ServerClock.reachBack} since the last call of `takeReach`, or 0.
   */
  takeReach(): number {
    const ms = this.#reachMs;
    this.#reachMs = 0;
    return ms;
  }

  /** Updates the estimate of the server's clocks with the modification times of records that were read, in epoch ms. */
  see(updatedAt: readonly (number | null)[]): void {
    const correctionMs = this.#correctionMs;
    for (const stamp of updatedAt) if (stamp !== null) this.#see(stamp + correctionMs);
  }

  /**
   * Updates the estimate of how far the stamps (modification times) of new changes are behind the `Date` header.
   *
   * @param updatedAt Stamps of the records on a page of a poll, in epoch ms. Only stamps later than `newest` and not later than `Date` are
   * used: they show records that were modified shortly before the response.
   * @param newest Result of `newest()` at the start of the poll, in epoch ms.
   */
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

  /**
   * Sets the offset of the API's date parameters: a request with the date `s + offsetMs` matches records with the stamp `s`. A negative
   * offset, minus one hour for daylight saving, is added to every stamp, including those seen before, so that windows do not begin too
   * late.
   */
  shift(offsetMs: number): void {
    const before = this.#correctionMs;
    this.#offsetMs = offsetMs;
    const moreMs = this.#correctionMs - before;
    if (this.#newest !== undefined) this.#newest += moreMs;
    if (this.#ahead !== undefined) this.#ahead += moreMs;
    this.#lag.far = Math.max(0, this.#lag.far - moreMs);
    this.#lag.near = Math.max(0, this.#lag.near - moreMs);
  }

  /**
   * Correction, in ms, that is added to each stamp so that poll windows do not begin too late: `#offsetMs` minus one hour (for daylight
   * saving) if `#offsetMs` is negative, otherwise 0.
   */
  get #correctionMs(): number {
    return this.#offsetMs < 0 ? this.#offsetMs - DST_MS : 0;
  }

  /**
   * Updates the estimates with a stamp: the newest stamp, the smallest lag of stamps behind `Date`, and the resolution of stamps. A stamp
   * later than `Date` does not count until `Date` has passed it.
   *
   * @param at The stamp in epoch ms, to which `#correctionMs` has already been added.
   */
  #see(at: number): void {
    if (this.#date !== undefined && at > this.#date) {
      // Only the newest is stored: polls read the records of the others again. One stamp in the future must not hide a slow clock.
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

  /**
   * Returns an estimate of how far stamps are behind UTC because they are local times, in ms. It is the larger of two values:
   *
   * - The smallest lag of stamps behind `Date`, minus the offset of the date parameters if that is positive. A lag up to `MAX_BEHIND_MS`
   *   counts as 0. The maximum is `MAX_ZONE_MS`.
   * - The size of the offset of the date parameters, if the offset is negative.
   *
   * @param reach Stamps whose lag is used. `far`: all stamps. `near`: those of new changes that polls have read.
   */
  #zoneMs(reach: 'near' | 'far'): number {
    const behindMs = this.#lag[reach] - Math.max(0, this.#offsetMs);
    const isZone = behindMs > MAX_BEHIND_MS && behindMs < Infinity;
    return Math.max(isZone ? Math.min(behindMs, MAX_ZONE_MS) : 0, -this.#offsetMs);
  }
}
