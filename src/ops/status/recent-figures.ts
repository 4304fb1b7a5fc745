// Figures of the recent past in bounded memory: values per time slot, quantiles of durations, and the rate of an initial snapshot.

import type { InitialSnapshotStatus } from './status-json.ts';

/** Stores a value, such as a count, for each of the newest time slots. Slots begin at multiples of their length. */
export class TimeSlots<T> {
  readonly #now: () => number;
  readonly #everyMs: number;
  readonly #empty: () => T;
  readonly #slots: T[];
  /** Number of the current time slot, counted from time 0 of the clock. */
  #running: number;

  /**
   * @param now Returns the time of a steady clock, in ms.
   * @param everyMs Length of a time slot, in ms. One value is stored for each slot.
   * @param count Number of past time slots that are stored, besides the current one.
   * @param empty Returns the initial value of a time slot to which nothing was added yet.
   */
  constructor(now: () => number, everyMs: number, count: number, empty: () => T) {
    this.#now = now;
    this.#everyMs = everyMs;
    this.#empty = empty;
    this.#slots = Array.from({ length: count + 1 }, empty);
    this.#running = Math.floor(now() / everyMs);
  }

  /** Returns the value of the current time slot. The caller may change that value. */
  current(): T {
    return this.all().at(-1)!;
  }

  /** Returns the values of the `count` time slots before the current one, the oldest first. */
  past(): readonly T[] {
    return this.all().slice(0, -1);
  }

  /** Returns the values of all time slots, the oldest first. The last one is that of the current slot. */
  all(): readonly T[] {
    this.#advance();
    return this.#slots;
  }

  /** Returns when the newest complete time slot ended, in ms, by the clock that was passed to the constructor. */
  endsAt(): number {
    this.#advance();
    return this.#running * this.#everyMs;
  }

  #advance(): void {
    const slot = Math.floor(this.#now() / this.#everyMs);
    for (let n = Math.min(slot - this.#running, this.#slots.length); n > 0; n--) {
      this.#slots.shift();
      this.#slots.push(this.#empty());
    }
    this.#running = Math.max(this.#running, slot);
  }
}

/**
 * Ratio between the upper and the lower bound of a bucket of the histogram of durations. With this value, the middle of a bucket differs
 * from every duration in the bucket by 10 % at most.
 */
const GROWTH = 1.2;
/** Index of the last bucket. It ends after more than 140 years; longer durations are counted in it as well. */
const MAX_BUCKET = 160;

/** A histogram of durations, for {@link quantile}. Its memory is bounded: it has at most 161 buckets, with one count each. */
export class Durations {
  /** Number of durations in each bucket, by the bucket's index. */
  readonly buckets = new Map<number, number>();

  /** Counts a duration, given in ms. All durations below 1 ms are counted in the same bucket. */
  add(ms: number): void {
    const bucket = ms < 1 ? 0 : 1 + Math.floor(Math.log(ms) / Math.log(GROWTH));
    const at = Math.min(bucket, MAX_BUCKET);
    this.buckets.set(at, (this.buckets.get(at) ?? 0) + 1);
  }
}

/**
 * Returns a quantile of the durations, in ms, accurate to 10 %. `share` is between 0 and 1; 0.5 gives the median. Durations below 1 ms
 * count as 0. Null if there are no durations.
 */
export function quantile(all: readonly Durations[], share: number): number | null {
  const sum = new Map<number, number>();
  let total = 0;
  for (const { buckets } of all) {
    for (const [bucket, count] of buckets) {
      sum.set(bucket, (sum.get(bucket) ?? 0) + count);
      total += count;
    }
  }
  let before = 0;
  for (const [bucket, count] of [...sum].sort(([a], [b]) => a - b)) {
    before += count;
    if (before >= share * total) return bucket === 0 ? 0 : GROWTH ** (bucket - 0.5);
  }
  return null;
}

/** Period over which the rate of an initial snapshot is measured, in ms. */
const OVER_MS = 60_000;
/** Maximum number of recent pages that are stored in order to measure the rate of an initial snapshot. */
const MAX_PAGES = 200;

type Progress = Pick<InitialSnapshotStatus, 'read' | 'total' | 'done'>;

/** Measures the progress and the rate of a list's initial snapshot, and estimates the time left. */
export class SnapshotRate {
  readonly #now: () => number;
  #newest: Progress | undefined;
  #pages: { readonly at: number; readonly read: number }[] = [];

  /**
   * Creates a measurement that has not received a page of the snapshot yet.
   *
   * @param now Returns the time of a steady clock, in ms.
   */
  constructor(now: () => number) {
    this.#now = now;
  }

  add({ read, total, done }: Progress): void {
    // After a claim the snapshot resumes where it was last committed, a little further back.
    if (this.#newest && read < this.#newest.read) this.#pages = [];
    this.#newest = { read, total, done };
    this.#pages.push({ at: this.#now(), read });
    this.#forget();
  }

  /** Whether an initial snapshot has begun and is not complete. */
  get isRunning(): boolean {
    return this.#newest?.done === false;
  }

  status(): InitialSnapshotStatus | null {
    if (!this.#newest) return null;
    this.#forget();
    const { read, total, done } = this.#newest;
    const [first] = this.#pages; // undefined: no page within OVER_MS
    const elapsedMs = first ? this.#now() - first.at : OVER_MS;
    const isKnown = !done && this.#pages.length !== 1 && elapsedMs > 0;
    const perMs = isKnown && first ? (read - first.read) / elapsedMs : 0;
    return {
      read,
      total,
      done,
      perSecond: isKnown ? perMs * 1_000 : null,
      leftMs: perMs > 0 ? Math.max(0, total - read) / perMs : null,
    };
  }

  #forget(): void {
    const pages = this.#pages;
    while (pages.length > MAX_PAGES || (pages[0] && this.#now() - pages[0].at > OVER_MS)) {
      pages.shift();
    }
  }
}
