// Figures of the recent past in bounded memory: values per time slot, quantiles of durations, and the rate of an initial snapshot.

import type { InitialSnapshotStatus } from './status-json.ts';

interface TimeSlotsOptions<T> {
  /** Length of a time slot, in ms. */
  readonly everyMs: number;
  /** Number of stored time slots besides the current one. */
  readonly count: number;
  /** Returns the time of a steady clock, in ms. */
  readonly now: () => number;
  /** Creates the value of a new time slot. */
  readonly empty: () => T;
}

/**
 * Stores a value, such as a count, for each of the newest time slots. Slots begin at multiples of their length; slots in which nothing was
 * added hold the empty value.
 */
export class TimeSlots<T> {
  readonly #options: TimeSlotsOptions<T>;
  readonly #slots: T[];
  /** Number of the current time slot, counted from time 0 of the clock. */
  #running: number;

  constructor(options: TimeSlotsOptions<T>) {
    this.#options = options;
    this.#slots = Array.from({ length: options.count + 1 }, options.empty);
    this.#running = Math.floor(options.now() / options.everyMs);
  }

  /** Value of the current time slot, for the caller to change. */
  current(): T {
    this.#advance();
    return this.#slots.at(-1)!;
  }

  /** Values of the `count` complete time slots, the oldest first. */
  past(): readonly T[] {
    this.#advance();
    return this.#slots.slice(0, -1);
  }

  /** Values of all time slots, the current one last. */
  all(): readonly T[] {
    this.#advance();
    return this.#slots;
  }

  /** When the newest complete time slot ended, in ms. */
  endsAt(): number {
    this.#advance();
    return this.#running * this.#options.everyMs;
  }

  #advance(): void {
    const { now, everyMs, empty } = this.#options;
    const slot = Math.floor(now() / everyMs);
    for (let n = Math.min(slot - this.#running, this.#slots.length); n > 0; n--) {
      this.#slots.shift();
      this.#slots.push(empty());
    }
    this.#running = Math.max(this.#running, slot);
  }
}

/** Ratio of the widths of neighbouring buckets: the middle of a bucket is within 10 % of every duration in it. */
const GROWTH = 1.2;
/** Index of the last bucket, which also counts longer durations; it ends after more than 140 years. */
const MAX_BUCKET = 160;

/** A histogram of durations, for {@link quantile}. Its memory is bounded: one count for each of at most 161 buckets. */
export class Durations {
  /** Number of durations by the index of their bucket. */
  readonly buckets = new Map<number, number>();

  /** Adds a duration in ms; all below 1 ms share one bucket. */
  add(ms: number): void {
    const bucket = ms < 1 ? 0 : 1 + Math.floor(Math.log(ms) / Math.log(GROWTH));
    const at = Math.min(bucket, MAX_BUCKET);
    this.buckets.set(at, (this.buckets.get(at) ?? 0) + 1);
  }
}

/**
 * Returns a quantile in ms, to within 10 %: the duration that the fraction `share` (0 to 1) of all durations does not exceed. Null when
 * there are none. A share of 0.5 gives the median; of an even number, the lower of the two in the middle.
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
/** Maximum number of recent pages that are stored for the rate. */
const MAX_PAGES = 200;

type Progress = Pick<InitialSnapshotStatus, 'read' | 'total' | 'done'>;

/** Measures the progress of a list's initial snapshot, its rate, and the estimated time left. */
export class SnapshotRate {
  readonly #now: () => number;
  #newest: Progress | undefined;
  #pages: { readonly at: number; readonly read: number }[] = [];

  /** @param now Returns the time of a steady clock, in ms. */
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
