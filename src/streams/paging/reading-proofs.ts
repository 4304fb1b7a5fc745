// What one complete reading of a list shows: how its keys are sorted, whether the list may be cut off at its total, and since when a
// missing key is proven to be gone.

import { PageRecord } from '../records/page-record.ts';
import type { PageRecords } from '../records/page-records.ts';

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

/** A list's total as readings have shown it. */
interface ShownTotal {
  /** The highest total that the pages of the newest reading told. */
  readonly top: number;
  /** The highest total of all readings so far, this one included. */
  readonly peak: number;
  /** Whether records are missing that vanished all at once. */
  readonly lacksMass: boolean;
  /** Whether the reading's only page has room for more records than it shows. */
  readonly fitsOnePage: boolean;
}

/** A list that is cut off shows at least so many records. */
const MIN_CAP = 20;

/**
 * Whether a list may be cut off at its total. Search engines show 10,000 records and `total_records: 10000`, however many more there
 * are. A single answer does not show this, but
 *
 * - a cap seldom changes, so a list whose total is below the highest one seen is shown whole, unless much of it vanished at once: then the
 *   cap may be another one;
 * - a cap is a round number in the decimal or the binary system, or one less: 500, 1,024, 9,999;
 * - a cap is no smaller than a page, so a list that does not fill its only page is shown whole.
 *
 * A list that is whole may look cut off until its total moves. Until then its deletions wait, because a record behind a cut can't be told
 * from one that is gone: its place in the list is known only as it was when it was last read.
 */
export function mayBeCut({ top, peak, lacksMass, fitsOnePage }: ShownTotal): boolean {
  return (top >= peak || lacksMass) && isPlausibleCap(top) && !fitsOnePage;
}

/** Whether a total is one at which APIs are known to stop counting: thousands, or a power of two from 1,024 on; or one less. */
export function isUsualCap(total: number): boolean {
  return total >= 999 && [total, total + 1].some((each) => each % 1_000 === 0 || isPower(each));
}

function isPlausibleCap(total: number): boolean {
  if (total < MIN_CAP) return false;
  return total % 10 === 0 || (total + 1) % 1_000 === 0 || isPower(total) || isPower(total + 1);
}

function isPower(total: number): boolean {
  return Number.isInteger(Math.log2(total));
}

/** How a reading's records are sorted by their keys: `none` once two neighbours contradict, null before two have differed. */
export type KeyOrder = 'asc' | 'desc' | 'none' | null;

/** The order after one more page. Pages overlap, so each needs only be compared within itself. */
export function keyOrderAfter(order: KeyOrder, records: PageRecords): KeyOrder {
  if (order === 'none') return order;
  let shown: KeyOrder = order;
  let before: KeyBytes | undefined;
  const compareNext = (bytes: Uint8Array, from: number, to: number) => {
    const key = { bytes, from, to };
    if (before) shown = orderWith(shown, compareKeys(before, key));
    before = key;
  };
  for (const part of records.parts) {
    if (!(part instanceof PageRecord)) part.run.eachKey(compareNext);
    else if (part.key !== undefined) {
      const bytes = Buffer.from(part.key);
      compareNext(bytes, 0, bytes.length);
    }
  }
  return shown;
}

/** A key in UTF-8: the bytes from `from` up to, not including, `to`. Keys of runs stay packed, as most pages are known and swept often. */
interface KeyBytes {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

function orderWith(order: KeyOrder, sign: number): KeyOrder {
  if (sign === 0 || order === 'none') return order;
  const next = sign < 0 ? 'asc' : 'desc';
  return order === null || order === next ? next : 'none';
}

/** Compares whole numbers by their value, all other keys by their bytes, which is the order of their code points. */
function compareKeys(one: KeyBytes, other: KeyBytes): number {
  const longer = lengthOf(one) - lengthOf(other);
  if (longer !== 0 && isWholeNumber(one) && isWholeNumber(other)) return longer;
  const common = Math.min(lengthOf(one), lengthOf(other));
  for (let at = 0; at < common; at += 1) {
    const sign = one.bytes[one.from + at]! - other.bytes[other.from + at]!;
    if (sign !== 0) return sign;
  }
  return longer;
}

const lengthOf = ({ from, to }: KeyBytes) => to - from;

const [ZERO, NINE] = [0x30, 0x39];

/** Whether a key is decimal digits without a leading zero. */
function isWholeNumber({ bytes, from, to }: KeyBytes): boolean {
  if (to === from || (bytes[from] === ZERO && to > from + 1)) return false;
  for (let at = from; at < to; at += 1) {
    if (bytes[at]! < ZERO || bytes[at]! > NINE) return false;
  }
  return true;
}
