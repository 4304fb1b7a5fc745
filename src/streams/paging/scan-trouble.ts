import type { PlanFinding } from '../http/page-plan.ts';

/** A problem detected during a scan. Only `unsettled`, `gap`, `cut` and `shifted` mean that records may be missing. */
export type ScanTrouble =
  /**
   * A page has no anchor (an unchanged record that was read before), or the server refused its cursor. The scan returns to an earlier page.
   * After too many pages without an anchor, the scan instead requests the same page again and accepts it.
   */
  | 'stepped-back'
  /**
   * The scan stepped back too often without reading a page that has an anchor (an unchanged record that was read before). It begins again
   * at the start of the list.
   */
  | 'adrift'
  /** Unchanged records are in a different order than earlier in the scan: the list has no total order. */
  | 'reordered'
  /** All rounds of a repeated scan together have shown fewer distinct records than `total`, although `total` has not changed meanwhile. */
  | 'short'
  /**
   * The scan has ended, but may have missed records, in one of these cases:
   *
   * - The scan was repeated as often as allowed, and has still read fewer distinct records than `total`, the number that the API reports.
   * - Records can't be counted. In the last allowed repetition, unchanged records were in another order than before, or a page without an
   *   anchor was accepted.
   * - The scan ended with the trouble `endless`, and the API reports no `total`.
   */
  | 'unsettled'
  /**
   * The server says that another page follows, although pages bring no new records, lie far beyond `total`, or name themselves as the next
   * page. This page counts as the last one.
   */
  | 'endless'
  /**
   * A page has a gap: a record that no response contains, because every page with it fails. The record is left out until the next scan.
   */
  | 'gap'
  /**
   * The list is capped: the API serves no records from some offset on although the list has more. Also reported if a response says that
   * another page follows, but not how to request it.
   */
  | 'cut'
  /** The scan begins again, because the server refused the cursor of the next page twice, or there is no earlier page to step back to. */
  | 'expired'
  /**
   * A page repeats an unchanged record of the page before it although pages do not overlap: records move between pages, and may be missed.
   */
  | 'shifted'
  | PlanFinding;

/**
 * Troubles after which a full scan counts as not consistent, because it may have missed records. `gap` is not among them: a gap also shows
 * as an unreadable record, and any unreadable record makes the scan count as not consistent.
 */
export const INCONSISTENT: ReadonlySet<ScanTrouble> = new Set(['unsettled', 'cut', 'shifted']);
