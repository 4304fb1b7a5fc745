/** A list's total as readings have shown it. */
export interface ShownTotal {
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

/** Whether a number is a power of two. */
function isPower(total: number): boolean {
  return Number.isInteger(Math.log2(total));
}
