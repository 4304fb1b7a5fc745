// Limits the number of log lines: lines that repeat, sums of what was published, and problems of single records.

import type { Published } from '../observe/hooks.ts';
import { countPage } from '../ops/status/hook-figures.ts';

/** Limits how often a log line is written. */
export class LineLimit {
  readonly #intervalMs: number;
  readonly #written = new Map<string, { readonly value: unknown; readonly at: number }>();

  /** @param intervalMs Minimum time between two lines with the same name and value, in ms. */
  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /**
   * Returns whether the caller is to write a line about `name`: there was none in the last interval, or the previous one had another
   * `value`.
   */
  isDue(name: string, value?: unknown): boolean {
    const at = performance.now();
    const last = this.#written.get(name);
    if (last && last.value === value && at - last.at < this.#intervalMs) return false;
    this.#written.set(name, { value, at });
    return true;
  }
}

/** Sums what is read and published of each list, for one log line in each interval. */
export class PublishedCounts {
  readonly #intervalMs: number;
  readonly #byList = new Map<string, ReturnType<typeof countsFrom>>();

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /**
   * Adds a published page to the sums of its list. If the list's interval has passed, returns the sums and the number of seconds that they
   * cover, and begins a new interval. Otherwise returns undefined.
   */
  add(page: Published) {
    const now = performance.now();
    const sums = this.#byList.get(page.resource) ?? countsFrom(now);
    this.#byList.set(page.resource, sums);
    sums.records += countPage(page).read;
    sums.events += page.changes.length;
    sums.statusChanges += page.statusChanges.length;
    const { since, ...counts } = sums;
    if (now - since < this.#intervalMs) return undefined;
    this.#byList.set(page.resource, countsFrom(now));
    return { seconds: Math.round((now - since) / 1_000), ...counts };
  }
}

/** Returns sums that begin now. `since` is monotonic time, in ms. */
function countsFrom(since: number) {
  return { since, records: 0, events: 0, statusChanges: 0 };
}

/**
 * Returns a function that takes a name and an item, and limits the calls of `emit` for each name. The first item is emitted at once. Later,
 * `emit` is called at intervals of `everyMs` (ms), with the newest item and the number of items since the previous call. Items that
 * still wait when the process ends are dropped.
 */
export function coalesce<T>(
  everyMs: number,
  emit: (newest: T, count: number) => void,
): (name: string, one: T) => void {
  const groups = new Map<string, { newest: T; count: number }>();
  return (name, one) => {
    const pending = groups.get(name);
    if (pending) {
      pending.count += 1;
      pending.newest = one;
      return;
    }
    emit(one, 1);
    const group = { newest: one, count: 0 };
    groups.set(name, group);
    const timer = setInterval(() => {
      const { newest, count } = group;
      group.count = 0;
      if (count > 0) return emit(newest, count);
      clearInterval(timer);
      groups.delete(name);
    }, everyMs);
    timer.unref();
  };
}
