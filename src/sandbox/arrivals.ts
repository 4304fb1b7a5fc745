// The log of requests as they arrive, and the quotas counted from it.

import type { Settings } from './options.ts';
import type { Endpoint } from './resources.ts';

/** Keeps the newest `limit` entries. */
export class BoundedLog<T> {
  readonly #limit: number;
  #entries: T[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(entry: T): void {
    this.#entries.push(entry);
    // Cut seldom and much: an entry is then moved about once, however long the log.
    if (this.#entries.length > this.#limit * 1.5 + 16) {
      this.#entries = this.#entries.slice(this.#entries.length - this.#limit);
    }
  }

  /** Oldest first. */
  entries(): T[] {
    return this.#limit > 0 ? this.#entries.slice(-this.#limit) : [];
  }
}

/** A request as it came in. */
export interface Arrival {
  /** Epoch ms by the sandbox's clock without its skew, with fractions. */
  readonly at: number;
  /** Of the answer; 0 until there is one, and for good when the connection was dropped. */
  status: number;
  /** As it was sent, without the question mark. */
  readonly query: string;
}

/** Every arrival, and the quotas: so many in ANY window, counted when requests arrive. */
export class Arrivals {
  readonly #settings: Settings;
  readonly #logs = new Map<Endpoint, BoundedLog<Arrival>>();
  /** Per quota the times that count in its window, oldest first; at most the quota's number. */
  readonly #counted = new Map<string, number[]>();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** @returns the arrival, and for how many ms it is too early: 0 when the quota allows it. */
  take(endpoint: Endpoint, query: string, at: number): { arrival: Arrival; waitMs: number } {
    const { quotaPerMinute, loginQuotaPerMinute, quotaScope, windowMs } = this.#settings;
    const arrival = { at, status: 0, query };
    this.#log(endpoint).push(arrival);
    const quota = endpoint === 'login' ? loginQuotaPerMinute : quotaPerMinute;
    const name = endpoint === 'login' || quotaScope === 'endpoint' ? endpoint : 'lists';
    const counted = this.#counted.get(name) ?? [];
    this.#counted.set(name, counted);
    while (counted.length > 0 && counted[0]! <= at - windowMs) counted.shift();
    const refused = counted.length >= quota;
    const waitMs = refused ? Math.max(1, counted[0]! + windowMs - at) : 0;
    if (!refused || this.#settings.readings.refusedCount) counted.push(at);
    if (counted.length > quota) counted.shift();
    return { arrival, waitMs };
  }

  /** Newest arrivals, oldest first. */
  of(endpoint: Endpoint): readonly Readonly<Arrival>[] {
    return this.#log(endpoint).entries();
  }

  /** Most arrivals in any half-open window `[t, t + windowMs)`. */
  mostInAnyWindow(endpoint: Endpoint, windowMs: number): number {
    const times = this.#log(endpoint)
      .entries()
      .map(({ at }) => at);
    let first = 0;
    return times.reduce((most, at, k) => {
      while (times[first]! <= at - windowMs) first++;
      return Math.max(most, k - first + 1);
    }, 0);
  }

  #log(endpoint: Endpoint): BoundedLog<Arrival> {
    let log = this.#logs.get(endpoint);
    if (!log) this.#logs.set(endpoint, (log = new BoundedLog(this.#settings.requestLogLimit)));
    return log;
  }
}
