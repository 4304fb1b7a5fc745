// Log of the requests that arrive, and quotas.

import type { SandboxSettings } from './options.ts';
import type { Endpoint } from './resources.ts';

export class BoundedLog<T> {
  readonly #limit: number;
  #entries: T[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(entry: T): void {
    this.#entries.push(entry);
    // Trims rarely and in large parts, so that each entry is moved about once.
    if (this.#entries.length > this.#limit * 1.5 + 16) {
      this.#entries = this.#entries.slice(this.#entries.length - this.#limit);
    }
  }

  /** Returns the log's last entries, up to its limit, in the order in which they were added. */
  entries(): T[] {
    return this.#limit > 0 ? this.#entries.slice(-this.#limit) : [];
  }
}

/** A request that the sandbox has received. */
export interface Arrival {
  /** Arrival time in epoch ms, with fractions, by a clock without the skew of the server's clock (`clockSkewMs`, `skewClock`). */
  readonly at: number;
  /** HTTP status of the response. It is 0 until the response is sent, and stays 0 if the connection was dropped. */
  status: number;
  /** Query string, without the question mark. */
  readonly query: string;
}

/** Logs every request, and enforces quotas: at most N requests in any window of `windowMs`, counted on arrival. */
export class Arrivals {
  readonly #settings: SandboxSettings;
  readonly #logs = new Map<Endpoint, BoundedLog<Arrival>>();
  /** Arrival times of the requests that count in a quota's current window, in epoch ms, oldest first. The keys are the quotas' names. */
  readonly #counted = new Map<string, number[]>();

  constructor(settings: SandboxSettings) {
    this.#settings = settings;
  }

  /** Logs a request. `waitMs` is 0 if the quota allows the request, else how long the client should wait, in ms. */
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
    if (!refused || this.#settings.readings.refusedCount) counted.push(at);
    if (counted.length > quota) counted.shift();
    // Computed after the request was counted: if refused requests count, this one takes the place of the oldest.
    const waitMs = refused ? Math.max(1, counted[0]! + windowMs - at) : 0;
    return { arrival, waitMs };
  }

  of(endpoint: Endpoint): readonly Readonly<Arrival>[] {
    return this.#log(endpoint).entries();
  }

  /** Returns the maximum number of logged requests to the endpoint in any half-open window `[t, t + windowMs)`. */
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
