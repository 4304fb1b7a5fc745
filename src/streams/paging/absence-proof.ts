import { isInFront } from './list-order.ts';
import type { ListOrder } from './list-order.ts';

/** A complete reading from which a record can be missing only if the API did not show it. */
export interface ProvingReading {
  readonly number: number;
  /** When its first page was asked for, ms on the local clock. */
  readonly beganAt: number;
  /** When it was known to prove something, ms on the local clock. */
  readonly at: number;
  /** `total_records` of its last page. */
  readonly total: number;
  /** Null if it did not end at the place that `total_records` says: then its last record is not the list's. */
  readonly order: ListOrder | null;
  /** The first of the complete readings in a row that ended with the same record. */
  readonly lastSince: number;
}

/** Two proving readings that are at least `DELETE_PROOF_MS` apart: a record is gone if both lack it, and all between. */
export interface ProvingPair {
  readonly first: ProvingReading;
  readonly second: ProvingReading;
}

/** Readings that are kept in the time of a proof, at most: one that comes sooner adds nothing. */
const READINGS_A_PROOF = 10;

/** Whether a reading was asked for only after a proof that began with another one. */
function isApart(first: ProvingReading, secondBeganAt: number, proofMs: number): boolean {
  return first.at + proofMs <= secondBeganAt;
}

/** The readings to keep after one more; of older ones only those that a pair may still begin with. */
export function provingWith(
  before: readonly ProvingReading[],
  next: ProvingReading,
  proofMs: number,
): readonly ProvingReading[] {
  const newest = before.at(-1);
  if (newest && next.at - newest.at < proofMs / READINGS_A_PROOF) return before;
  const oldEnough = before.findLastIndex((each) => isApart(each, next.beganAt, proofMs));
  const partner = before[oldEnough];
  // A pair may end with that one, too, where only a later total shows how far it has reached.
  const older = partner
    ? before.findLastIndex((each) => isApart(each, partner.beganAt, proofMs))
    : -1;
  return [...before.slice(Math.max(0, older)), next];
}

/** Pairs of readings that prove absences, the newest first. */
export function provingPairs(
  readings: readonly ProvingReading[],
  proofMs: number,
): readonly ProvingPair[] {
  return readings.toReversed().flatMap((second) => {
    const first = readings.findLast(
      (each) => each.number < second.number && isApart(each, second.beganAt, proofMs),
    );
    return first ? [{ first, second }] : [];
  });
}

/** What is known of published records, by key. */
export interface KeyMarks {
  /** Whether nothing has seen the key since the sweep of this number began. */
  isUnseen(key: string, since: number): boolean;
  /** Number of distinct keys among `keys` that no sweep has read since the one of this number. */
  unread(keys: readonly string[], since: number): number;
  /** `updated_at` of the key's newest image in epoch ms, if polls keep it up to date; else null. */
  timeOf(key: string): number | null;
}

export interface Reach {
  /** The highest total that a complete reading has ended with. */
  readonly peak: number | null;
  readonly marks: KeyMarks;
  /** Whether the key is of a mass that the operator lets go: a new cap looks like one, but then nobody would. */
  readonly isConfirmed: (key: string) => boolean;
}

/**
 * Whether a reading would have shown a record if it were there, though a server may cut its list off: search engines answer
 * 10,000 records and `total_records: 10000`, however many more there are. Whether a total is such a cap can't be seen in a single answer,
 * but the record is in front of the cut if
 *
 * - a larger total was seen, before or after: then this one was no cap;
 * - its place by key or `updated_at`, whichever the list is sorted by, is in front of the last record that was read; or
 * - the list has ended with the same record ever since a reading had this one: nothing was pushed out at its end.
 */
export function isInReach(key: string, reading: ProvingReading, reach: Reach): boolean {
  const { peak, marks } = reach;
  const { total, order, lastSince } = reading;
  if ((peak !== null && total < peak) || reach.isConfirmed(key)) return true;
  if (!order?.last) return false;
  // A reading comes to its last record last: one that only the first of those readings has read may have moved behind it since.
  return (
    isInFront({ key, time: marks.timeOf(key) }, order) || marks.unread([key], lastSince + 1) === 0
  );
}

/** Whether a key is gone by one of the pairs. */
export function isProvenGone(key: string, pairs: readonly ProvingPair[], reach: Reach): boolean {
  return pairs.some(
    ({ first, second }) =>
      reach.marks.isUnseen(key, first.number) &&
      isInReach(key, first, reach) &&
      isInReach(key, second, reach),
  );
}
