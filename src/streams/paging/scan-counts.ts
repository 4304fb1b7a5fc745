/** A set of keys. Only the first {@link MAX_NAMED} are listed, the others are counted. */
export interface KeySample {
  readonly keys: readonly string[];
  /** Number of keys that are not listed in `keys`. A key that is added repeatedly counts each time. */
  readonly more: number;
}

/** Counts of a full scan, for the message that is published after it (its certificate). Plain JSON. */
export interface ScanCounts {
  /**
   * When the first page was requested, in epoch ms on the server's clock, or on the local clock if the server sends no `Date` header. Null
   * before the first page.
   */
  readonly beganAt: number | null;
  /**
   * When the newest page was requested, in epoch ms on the server's clock. Null before the first page. If the server sends no `Date`
   * header, it is an approximate time of the local clock.
   */
  readonly endedAt: number | null;
  /** List offset up to which the scan has read: the highest offset that follows the last record of a page. */
  readonly reached: number;
  /** Number of rejected records (not publishable as they are) in the scan. A list offset that is read repeatedly counts once. */
  readonly rejected: number;
  /** Number of keys that are not published because the setting `START_FROM` excludes them, or the list shows them as deleted. */
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
  /**
   * When the page was requested, in epoch ms: `first` for the first page of a scan, `later` for other pages. They differ only without a
   * `Date` header: then `first` is when the scan began, and `later` when the page was processed.
   */
  readonly at: { readonly first: number; readonly later: number };
  /** Indexes of rejected records on the page. */
  readonly rejectedAt: readonly number[];
  /**
   * Number of keys on the page that are new in this scan and not published, because `START_FROM` excludes them or the list shows them as
   * deleted.
   */
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

/** Keys of the records of one read, by outcome: newest content published, too large to publish, or undecided (overlapping reads differ). */
export interface KeyOutcomes {
  /** Keys whose newest content is published, by this read or before it. */
  readonly decided: ReadonlySet<string>;
  /** Keys whose newest content is too large to publish. */
  readonly unpublished: readonly string[];
  readonly undecided: readonly string[];
}

/**
 * Returns `counts` with the outcomes of one more read: adds its unpublished and undecided keys, and removes listed keys ({@link KeySample})
 * whose newest content is published now.
 */
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

/**
 * Maximum number of keys listed in a {@link KeySample}. Further keys are only counted, so they can't be removed once their newest content
 * is published, and the count may be too high.
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
