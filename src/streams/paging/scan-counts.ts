// Counts of a full scan for its certificate.

/** A set of record keys, of which only the first {@link MAX_NAMED} are listed. */
export interface KeySample {
  readonly keys: readonly string[];
  /** Number of further keys of the set. As they are not listed, a repeated key counts again. */
  readonly more: number;
}

/** Counts of a full scan in addition to its distinct keys, for its certificate. Plain JSON. */
export interface ScanCounts {
  /**
   * When the first page was requested, in epoch ms by the server's clock, or by the local clock if the server sends no `Date`; null before.
   */
  readonly beganAt: number | null;
  /** When the newest page was requested, in epoch ms by the same clock as `beganAt`; null before the first page. */
  readonly endedAt: number | null;
  /** Highest list offset read so far. Pages overlap, so records before it may be read again. */
  readonly reached: number;
  /** Number of rejected records: without a usable key, or in conflict with another one. Each list offset counts once. */
  readonly rejected: number;
  /** Number of keys that `START_FROM` excludes. */
  readonly leftOut: number;
  /** Keys of records whose newest content is not published because it is too large. */
  readonly unpublished: KeySample;
  /** Keys of records whose newest content is not known yet, because overlapping reads showed different content. */
  readonly undecided: KeySample;
  /** Whether the scan is consistent so far. */
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

/** Counts of one page of a scan. */
export interface PageScanCounts {
  /** List offset of the page's first record. */
  readonly offset: number;
  /** Number of records on the page. */
  readonly length: number;
  /** When the page was requested, in epoch ms; `first` is used if it is the first page of the scan, `later` if not. */
  readonly at: { readonly first: number; readonly later: number };
  /** Indexes of rejected records on the page. */
  readonly rejectedAt: readonly number[];
  /** Number of keys, not seen before in this scan, that `START_FROM` excludes. */
  readonly leftOut: number;
  /** Whether the scan is consistent up to this page. */
  readonly isConsistent: boolean;
}

/** Returns the counts of a scan after one more page. */
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

/** Outcome of a read of any lane for keys that may be listed in {@link ScanCounts}. */
export interface KeyOutcomes {
  /** Keys whose newest content is now published. */
  readonly decided: ReadonlySet<string>;
  /** Keys whose newest content is too large to publish. */
  readonly unpublished: readonly string[];
  readonly undecided: readonly string[];
}

/** Returns the counts of a scan with the outcome of a read applied: keys whose content is now decided are removed from the listed ones. */
export function countsWith(counts: ScanCounts, read: KeyOutcomes): ScanCounts {
  const unpublished = updateSample(counts.unpublished, read.unpublished, read.decided);
  const undecided = updateSample(counts.undecided, read.undecided, read.decided);
  return unpublished === counts.unpublished && undecided === counts.undecided
    ? counts
    : { ...counts, unpublished, undecided };
}

/** Number of keys in a sample, listed or not. */
export function sampleSize({ keys, more }: KeySample): number {
  return keys.length + more;
}

/**
 * Maximum number of keys listed in a {@link KeySample}. A key beyond it cannot be removed once its content is decided, and stays counted.
 */
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
