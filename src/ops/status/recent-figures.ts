// Figures of the recent past in bounded memory: values per time slot, quantiles of durations, and the rate of an initial snapshot.

import type { InitialSnapshotStatus } from './status-json.ts';

interface TimeSlotsOptions<T> {
  /** Length of a time slot, in ms. */
  readonly everyMs: number;
  /** Number of complete time slots that are stored, in addition to the current one. */
  readonly count: number;
  /** Clock: returns ms, and never goes back. */
  readonly now: () => number;
  /** Creates the value of a time slot in which nothing was added yet. */
  readonly empty: () => T;
}

/**
 * Stores a value, such as a count, for each of the newest time slots. Slots begin at multiples of their length; slots in which nothing was
 * added hold the empty value.
 */
export function timeSlots<T>({ everyMs, count, now, empty }: TimeSlotsOptions<T>) {
  const slots = Array.from({ length: count + 1 }, empty);
  let running = Math.floor(now() / everyMs);
  const goOn = () => {
    const slot = Math.floor(now() / everyMs);
    for (let behind = Math.min(slot - running, slots.length); behind > 0; behind--) {
      slots.shift();
      slots.push(empty());
    }
    running = Math.max(running, slot);
  };
  return {
    /** Returns the value of the current time slot, for the caller to change. */
    current: (): T => {
      goOn();
      return slots[count]!;
    },
    /** Returns the values of the complete time slots, the oldest first; always `count` of them. */
    past: (): readonly T[] => {
      goOn();
      return slots.slice(0, count);
    },
    /** Returns when the newest complete time slot ended, in ms on the clock `now`. */
    endsAt: (): number => {
      goOn();
      return running * everyMs;
    },
  };
}

/** A histogram of durations, for {@link quantile}. */
export interface Durations {
  /** Adds a duration in ms to the histogram; all durations below 1 ms share one bucket. */
  readonly add: (ms: number) => void;
  /** Number of durations in each bucket of the histogram, by the bucket's index. */
  readonly buckets: ReadonlyMap<number, number>;
}

/**
 * Ratio of the widths of two neighbouring buckets of the histogram of durations. With 1.2 the middle of a bucket is within 10 % of every
 * duration in it.
 */
const GROWTH = 1.2;
/** Index of the last bucket of the histogram of durations, which also counts longer durations: it ends after more than 140 years. */
const MAX_BUCKET = 160;

/** Creates an empty histogram of durations. Its memory is bounded: one count for each of at most 161 buckets. */
export function durations(): Durations {
  const buckets = new Map<number, number>();
  return {
    buckets,
    add: (ms) => {
      const bucket = ms < 1 ? 0 : 1 + Math.floor(Math.log(ms) / Math.log(GROWTH));
      const at = Math.min(bucket, MAX_BUCKET);
      buckets.set(at, (buckets.get(at) ?? 0) + 1);
    },
  };
}

/**
 * Returns a quantile of all durations in the histograms, in ms, to within 10 %: the duration that the fraction `share` (0 to 1) of them
 * does not exceed. Null when there are none. A share of 0.5 gives the median; of an even number of durations, the lower of the two in the
 * middle.
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
/** Maximum number of recent pages from which the rate of an initial snapshot is computed; bounds memory. */
const MAX_PAGES = 200;

type Progress = Pick<InitialSnapshotStatus, 'read' | 'total' | 'done'>;

/**
 * Measures the progress of a list's initial snapshot, its rate, and the estimated time left.
 *
 * @param now Clock: returns ms, and never goes back.
 */
export function snapshotRate(now: () => number) {
  let newest: Progress | undefined;
  let pages: { readonly at: number; readonly read: number }[] = [];
  const forget = () => {
    while (pages.length > MAX_PAGES || (pages[0] && now() - pages[0].at > OVER_MS)) pages.shift();
  };
  return {
    add: ({ read, total, done }: Progress) => {
      // After a claim the snapshot resumes where it was last committed, a little further back.
      if (newest && read < newest.read) pages = [];
      newest = { read, total, done };
      pages.push({ at: now(), read });
      forget();
    },
    status: (): InitialSnapshotStatus | null => {
      if (!newest) return null;
      forget();
      const { read, total, done } = newest;
      const first = pages[0];
      const elapsedMs = first ? now() - first.at : OVER_MS; // undefined: no page within OVER_MS
      const isKnown = !done && pages.length !== 1 && elapsedMs > 0;
      const perMs = isKnown && first ? (read - first.read) / elapsedMs : 0;
      return {
        ...newest,
        perSecond: isKnown ? perMs * 1_000 : null,
        leftMs: perMs > 0 ? Math.max(0, total - read) / perMs : null,
      };
    },
  };
}
