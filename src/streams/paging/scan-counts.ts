/** A set of keys, of which only the first {@link MAX_NAMED} are listed. */
export interface KeySample {
  readonly keys: readonly string[];
  /** Number of further keys; a repeated one counts again. */
  readonly more: number;
}

/** Counts of a full scan for its certificate. Plain JSON. */
export interface ScanCounts {
  /** When the first page was requested, in epoch ms on the server's clock, or on the local one if the server sends no `Date`. */
  readonly beganAt: number | null;
  /** When the newest page was requested, on the same clock. */
  readonly endedAt: number | null;
  /** Highest list offset read so far. */
  readonly reached: number;
  /** Number of rejected records. Each list offset counts once. */
  readonly rejected: number;
  /** Number of keys that `START_FROM` excludes. */
  readonly leftOut: number;
  /** Keys whose newest content is too large to publish. */
  readonly unpublished: KeySample;
  /** Keys of which overlapping reads showed different content. */
  readonly undecided: KeySample;
  readonly settled: boolean;
}

const NO_KEYS: KeySample = { keys: [], more: 0 };

export const NO_COUNTS: ScanCounts = {
  beganAt: null,
  endedAt: null,
  reached: 0,
  rejected: 0,
  leftOut: 0,
  unpublished: NO_KEYS,
  undecided: NO_KEYS,
  settled: true,
};

export interface PageScanCounts {
  /** List offset of the page. */
  readonly offset: number;
  readonly length: number;
  /** When the page was requested, in epoch ms, if it is the first page of the scan, or a later one. */
  readonly at: { readonly first: number; readonly later: number };
  /** Indexes of rejected records. */
  readonly rejectedAt: readonly number[];
  /** Number of new keys that `START_FROM` excludes. */
  readonly leftOut: number;
  readonly isConsistent: boolean;
}

export function countsAfter(
  counts: ScanCounts,
  { offset, length, at, rejectedAt, leftOut, isConsistent }: PageScanCounts,
): ScanCounts {
  const { beganAt, reached } = counts;
  return {
    ...counts,
    beganAt: beganAt ?? at.first,
    // The estimate of the server's time is slightly too early now and then.
    endedAt: beganAt === null ? at.first : Math.max(beganAt, at.later),
    reached: Math.max(reached, offset + length),
    rejected: counts.rejected + rejectedAt.filter((place) => offset + place >= reached).length,
    leftOut: counts.leftOut + leftOut,
    settled: counts.settled && isConsistent,
  };
}

/** Outcome of a read of any lane. */
export interface KeyOutcomes {
  /** Keys whose newest content is published. */
  readonly decided: ReadonlySet<string>;
  /** Keys whose newest content is too large to publish. */
  readonly unpublished: readonly string[];
  readonly undecided: readonly string[];
}

/** Applies the outcome of a read: keys whose content is now decided are removed. */
export function countsWith(counts: ScanCounts, read: KeyOutcomes): ScanCounts {
  const unpublished = updateSample(counts.unpublished, read.unpublished, read.decided);
  const undecided = updateSample(counts.undecided, read.undecided, read.decided);
  return unpublished === counts.unpublished && undecided === counts.undecided
    ? counts
    : { ...counts, unpublished, undecided };
}

export function sampleSize({ keys, more }: KeySample): number {
  return keys.length + more;
}

/** Maximum number of listed keys. A key beyond it stays counted once its content is decided. */
const MAX_NAMED = 1_000;

function updateSample(
  before: KeySample,
  more: readonly string[],
  without: ReadonlySet<string>,
): KeySample {
  if (more.length === 0 && before.keys.length === 0) return before;
  const all = [...new Set([...before.keys.filter((key) => !without.has(key)), ...more])];
  const keys = all.slice(0, MAX_NAMED);
  return { keys, more: before.more + all.length - keys.length };
}
