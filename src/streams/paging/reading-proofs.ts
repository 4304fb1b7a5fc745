// Proofs by full scans of a list: how its keys are sorted, whether the API may cap the list at its total, and which missing keys are
// deleted.

import { PageRecord } from '../records/page-record.ts';
import type { TallyText } from '../../schemas/events/key-tally.ts';
import type { PageRecords } from '../records/page-records.ts';

/** A full scan that read every record that the API served, so that it can prove deletions together with another such scan. */
export interface ProvingScan {
  /** Number of the sweep, from 1. */
  readonly number: number;
  /** When the scan's first page was requested or, if it came from a cache, produced; in epoch ms on the local clock. */
  readonly beganAt: number;
  /**
   * When the scan ended, in epoch ms on the local clock. If the scan proves deletions only together with polls: when polls had read all
   * changes made during it.
   */
  readonly at: number;
  /**
   * Count and digest of the keys that the scan read. Set if the scan proves deletions only together with a second scan that read the same
   * keys.
   */
  readonly keys?: TallyText;
}

/**
 * Maximum number of full scans per `proofMs` that are retained, to prove deletions together with a later scan. A scan that ends less than
 * `proofMs / MAX_PROVING_SCANS` after the last retained one is not retained.
 */
const MAX_PROVING_SCANS = 10;

/**
 * Returns the full scans to retain, oldest first, with which a later scan can prove deletions:
 *
 * - the newest scan in `before` that ended at least `proofMs` before `next` began, and all later ones (all of `before` if there is none);
 * - `next`, unless it ended less than a tenth of `proofMs` after the newest scan in `before`.
 */
export function addProvingScan(
  before: readonly ProvingScan[],
  next: ProvingScan,
  proofMs: number,
): readonly ProvingScan[] {
  const newest = before.at(-1);
  const isDue = !newest || next.at - newest.at >= proofMs / MAX_PROVING_SCANS;
  const begin = before.findLastIndex((each) => isApart(each, next, proofMs));
  return [...before.slice(Math.max(0, begin)), ...(isDue ? [next] : [])];
}

/**
 * Returns the sweep number of the newest scan in `before` that proves deletions together with `newest`: a missing key is deleted if no read
 * has shown it since the returned scan began. Undefined if there is no such scan.
 *
 * The scan must have ended at least `proofMs` before `newest` began. The `keys` (count and digest) of both scans must be equal, or both
 * undefined.
 *
 * @param before Earlier scans, oldest first.
 * @param newest The later of the two scans.
 */
export function provenSince(
  before: readonly ProvingScan[],
  newest: ProvingScan,
  proofMs: number,
): number | undefined {
  return before.findLast(
    (each) => each.number < newest.number && isApart(each, newest, proofMs) && agree(each, newest),
  )?.number;
}

function agree({ keys: one }: ProvingScan, { keys: other }: ProvingScan): boolean {
  return one?.digest === other?.digest && one?.records === other?.records;
}

function isApart(first: ProvingScan, { beganAt }: ProvingScan, proofMs: number): boolean {
  return first.at + proofMs <= beganAt;
}

/** Data from a list's scans that show whether its `total` may be a cap: a limit beyond which the API serves no records. */
interface ShownTotal {
  /** Highest `total` in the newest scan. If no `total` marks the list's end, at least the number of keys that the scan read. */
  readonly top: number;
  /** Highest `total` in all scans. If no `total` marks the list's end, at least the highest number of keys that a scan read. */
  readonly peak: number;
  /** Whether deletions are held back at present, because more keys went missing at once than the deletion limit allows. */
  readonly lacksMass: boolean;
  /** Whether the scan had a single page with fewer records than requested. */
  readonly fitsOnePage: boolean;
}

/**
 * Smallest total that may be a cap (a limit beyond which the API serves no records). If it is too small, deletions in short lists are
 * delayed without need.
 */
const MIN_CAP = 20;

/**
 * Whether the API may cap a list at its total, as search engines do that return 10,000 records and `total_records: 10000`, however many
 * more there are. The list counts as not capped in these cases:
 *
 * - The total is below the highest one seen (a cap seldom changes), and no deletions of many keys are held back.
 * - The total is below 20, or not a number that APIs use as a cap: a multiple of 10, a power of two, or one less than a power of two or a
 *   multiple of 1,000.
 * - The list has a single page and does not fill it.
 *
 * Sweeps of a list that may be capped prove no deletions, because a missing record may have moved beyond the cap.
 */
export function mayBeCut({ top, peak, lacksMass, fitsOnePage }: ShownTotal): boolean {
  // If many keys went missing at once, the cap may have changed.
  return (top >= peak || lacksMass) && isPlausibleCap(top) && !fitsOnePage;
}

/**
 * Whether a total is one at which APIs often stop counting: a multiple of 1,000, a power of two from 1,024 on, or one less than such a
 * number.
 */
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

/** Sort order of the keys of a scan. `none`: neither ascending nor descending. Null: unknown, as no adjacent keys have differed so far. */
export type KeyOrder = 'asc' | 'desc' | 'none' | null;

/** Returns the sort order that a scan's keys have shown after one more page. Pages overlap, so only keys of the same page are compared. */
export function keyOrderAfter(order: KeyOrder, records: PageRecords): KeyOrder {
  if (order === 'none') return order;
  let shown: KeyOrder = order;
  let before: KeyBytes | undefined;
  let spare: KeyBytes | undefined; // two objects are used alternately: one for each record would be much garbage
  const compareNext = (bytes: Uint8Array, from: number, to: number) => {
    const key = spare ?? { bytes, from, to };
    key.bytes = bytes;
    key.from = from;
    key.to = to;
    if (before) shown = orderWith(shown, compareKeys(before, key));
    spare = before;
    before = key;
  };
  for (const part of records.parts) {
    if (!(part instanceof PageRecord)) part.run.eachKey(compareNext);
    else if (part.key !== undefined) {
      const { bytes, from, to } = keyBytes(part.key);
      compareNext(bytes, from, to);
    }
  }
  return shown;
}

/** Returns the sort order of the keys of one page. */
export function keyOrderOf(keys: readonly string[]): KeyOrder {
  const all = keys.map(keyBytes);
  return all
    .slice(1)
    .reduce<KeyOrder>((order, key, nth) => orderWith(order, compareKeys(all[nth]!, key)), null);
}

/** A key as UTF-8 bytes within a larger buffer, to be compared without creating a string. */
interface KeyBytes {
  bytes: Uint8Array;
  from: number;
  to: number;
}

function keyBytes(key: string): KeyBytes {
  const bytes = Buffer.from(key);
  return { bytes, from: 0, to: bytes.length };
}

function orderWith(order: KeyOrder, sign: number): KeyOrder {
  if (sign === 0 || order === 'none') return order;
  const next = sign < 0 ? 'asc' : 'desc';
  return order === null || order === next ? next : 'none';
}

/** Compares whole numbers by value, and other keys by their UTF-8 bytes, which is the order of their code points. */
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

function isWholeNumber({ bytes, from, to }: KeyBytes): boolean {
  if (to === from || (bytes[from] === ZERO && to > from + 1)) return false;
  for (let at = from; at < to; at += 1) {
    if (bytes[at]! < ZERO || bytes[at]! > NINE) return false;
  }
  return true;
}
