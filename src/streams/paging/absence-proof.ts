/** A complete reading from which a record can be missing only if the API did not show it. */
export interface ProvingReading {
  readonly number: number;
  /** When its first page was asked for, ms on the local clock. */
  readonly beganAt: number;
  /** When it was known to prove something, ms on the local clock. */
  readonly at: number;
}

/** Readings that are kept in the time of a proof, at most: one that comes sooner adds nothing. */
const READINGS_A_PROOF = 10;

/** The readings to keep after one more, the oldest first; of older ones only the newest that a proof may begin with. */
export function provingWith(
  before: readonly ProvingReading[],
  next: ProvingReading,
  proofMs: number,
): readonly ProvingReading[] {
  const newest = before.at(-1);
  const isDue = !newest || next.at - newest.at >= proofMs / READINGS_A_PROOF;
  const begin = before.findLastIndex((each) => isApart(each, next, proofMs));
  return [...before.slice(Math.max(0, begin)), ...(isDue ? [next] : [])];
}

/**
 * The number of the reading since which a key must have been seen, or the newest reading proves that it is gone; undefined when that
 * can't be told yet.
 */
export function provenSince(
  before: readonly ProvingReading[],
  newest: ProvingReading,
  proofMs: number,
): number | undefined {
  return before.findLast((each) => each.number < newest.number && isApart(each, newest, proofMs))
    ?.number;
}

/** Whether a reading was asked for only after a proof that began with another one. */
function isApart(first: ProvingReading, { beganAt }: ProvingReading, proofMs: number): boolean {
  return first.at + proofMs <= beganAt;
}
