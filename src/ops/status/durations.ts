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
