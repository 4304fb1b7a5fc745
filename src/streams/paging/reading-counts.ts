/** Keys, the first of them by name. */
export interface NamedKeys {
  readonly keys: readonly string[];
  /** How many there are beside those: they are not told apart. */
  readonly more: number;
}

/** What a complete reading has met beside the keys that it counts: for its certificate. Plain JSON. */
export interface ReadingCounts {
  /** When its first page and its newest were asked for: ms by the server, or by this machine where it does not tell. */
  readonly beganAt: number | null;
  readonly endedAt: number | null;
  /** How far into the list it has come: pages overlap. */
  readonly reached: number;
  /** Records without a usable key, or in conflict with another one; each place counts once. */
  readonly rejected: number;
  /** Keys that are not wanted: those that `START_FROM` has left out. */
  readonly leftOut: number;
  /** Keys whose newest content can't be published, for its size. */
  readonly unpublished: NamedKeys;
  /** Keys whose newest content can't be told yet. */
  readonly undecided: NamedKeys;
  /** False when the list did not add up. */
  readonly settled: boolean;
}

const NO_KEYS: NamedKeys = { keys: [], more: 0 };

export const NOTHING_COUNTED: ReadingCounts = {
  beganAt: null,
  endedAt: null,
  reached: 0,
  rejected: 0,
  leftOut: 0,
  unpublished: NO_KEYS,
  undecided: NO_KEYS,
  settled: true,
};

export interface CountedPage {
  readonly offset: number;
  readonly length: number;
  /** When it was asked for, ms: if it is the first, and if it is not. */
  readonly at: { readonly first: number; readonly later: number };
  /** Where on the page what is rejected stands. */
  readonly rejectedAt: readonly number[];
  /** How many of its keys are not wanted, of those that the reading had not met before. */
  readonly leftOut: number;
  readonly settled: boolean;
}

export function countsAfter(
  counts: ReadingCounts,
  { offset, length, at, rejectedAt, leftOut, settled }: CountedPage,
): ReadingCounts {
  const { beganAt, reached } = counts;
  return {
    ...counts,
    beganAt: beganAt ?? at.first,
    // What the server tells is a little too early now and then.
    endedAt: beganAt === null ? at.first : Math.max(beganAt, at.later),
    reached: Math.max(reached, offset + length),
    rejected: counts.rejected + rejectedAt.filter((place) => offset + place >= reached).length,
    leftOut: counts.leftOut + leftOut,
    settled: counts.settled && settled,
  };
}

/** What a read of whatever kind says of keys that were in doubt, and of others. */
export interface Settled {
  /** Keys whose newest content is now published. */
  readonly decided: ReadonlySet<string>;
  readonly unpublished: readonly string[];
  readonly undecided: readonly string[];
}

export function countsWith(counts: ReadingCounts, read: Settled): ReadingCounts {
  const unpublished = named(counts.unpublished, read.unpublished, read.decided);
  const undecided = named(counts.undecided, read.undecided, read.decided);
  return unpublished === counts.unpublished && undecided === counts.undecided
    ? counts
    : { ...counts, unpublished, undecided };
}

export function sizeOf({ keys, more }: NamedKeys): number {
  return keys.length + more;
}

/** So many are known by name: the rest can't be taken back. */
const MAX_NAMED = 1_000;

function named(
  before: NamedKeys,
  more: readonly string[],
  without: ReadonlySet<string>,
): NamedKeys {
  if (more.length === 0 && before.keys.length === 0) return before;
  const all = [...new Set([...before.keys.filter((key) => !without.has(key)), ...more])];
  const keys = all.slice(0, MAX_NAMED);
  return { keys, more: before.more + all.length - keys.length };
}
