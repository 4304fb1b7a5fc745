// Figures of the recent past in bounded memory: values by stretches of time, quantiles of lengths of time, and the pace of an initial
// snapshot.

import type { FirstReadStatus } from './status-json.ts';

interface TimeSlotsOptions<T> {
  /** How long a slot is, ms. */
  readonly everyMs: number;
  /** Complete slots that are kept; the one that runs is one more. */
  readonly count: number;
  /** The clock: ms, which never goes back. */
  readonly now: () => number;
  /** What an empty slot holds. */
  readonly empty: () => T;
}

/**
 * Something for each stretch of time, of which the newest are kept. Slots begin at multiples of their length. Those before the first
 * value are empty.
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
    /** Of the slot that runs: to be added to. */
    current: (): T => {
      goOn();
      return slots[count]!;
    },
    /** Of the complete slots, the oldest first; always as many. */
    past: (): readonly T[] => {
      goOn();
      return slots.slice(0, count);
    },
    /** When the newest complete slot ended, ms. */
    endsAt: (): number => {
      goOn();
      return running * everyMs;
    },
  };
}

/** Lengths of time, of which quantiles can be told. */
export interface Durations {
  /** Ms; below 1 counts as less than 1. */
  readonly add: (ms: number) => void;
  /** How many of them are in each bucket. */
  readonly buckets: ReadonlyMap<number, number>;
}

/** Each bucket is so many times as wide as the one below it: its middle is right to a tenth. */
const GROWTH = 1.2;
/** It ends with 146 years; longer ones count as that. */
const MAX_BUCKET = 160;

/** Memory stays bounded, however many there are: a count for each of at most 161 buckets. */
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
 * The length that `share` (0 to 1) of all are not above, ms, right to a tenth; null when there is none.
 * 0.5 is the median; of an even number, the lower of the two in the middle.
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

/** The pace of an initial snapshot is that of so long, ms. */
const OVER_MS = 60_000;
/** Pages of which it is made, at most. */
const MAX_PAGES = 200;

type Progress = Pick<FirstReadStatus, 'read' | 'total' | 'done'>;

/**
 * How far an initial snapshot is, how fast it goes, and when it will be done.
 *
 * @param now The clock: ms, which never goes back.
 */
export function snapshotPace(now: () => number) {
  let newest: Progress | undefined;
  let pages: { readonly at: number; readonly read: number }[] = [];
  const forget = () => {
    while (pages.length > MAX_PAGES || (pages[0] && now() - pages[0].at > OVER_MS)) pages.shift();
  };
  return {
    add: ({ read, total, done }: Progress) => {
      // A process that takes over goes on where it was committed: a little before.
      if (newest && read < newest.read) pages = [];
      newest = { read, total, done };
      pages.push({ at: now(), read });
      forget();
    },
    status: (): FirstReadStatus | null => {
      if (!newest) return null;
      forget();
      const { read, total, done } = newest;
      const first = pages[0];
      const elapsedMs = first ? now() - first.at : OVER_MS; // none: no page for so long
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
