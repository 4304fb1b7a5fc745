// Detects the end of a list whose server always claims a next page, and pages that begin at other offsets than requested.

import type { PageRecords } from '../records/page-records.ts';
import type { Position } from './anchors.ts';

interface IdlePage {
  /** Whether the page has a key that the scan had not read before; undefined if keys are not counted. */
  readonly hasNewKey: boolean | undefined;
  readonly isIdle: boolean;
  readonly isShort: boolean;
  readonly hasNext: boolean;
  readonly end: number;
  readonly total: number | undefined;
  /** The configured page size. */
  readonly pageSize: number;
}

/**
 * Number of short pages (with fewer records than requested) without new keys after which a scan ends although the server says that another
 * page follows. If it is too small, the scan of a list that changes may end too early.
 */
const IDLE_PAGES = 3;
/**
 * Number of full pages (with as many records as requested) without new keys after which a scan ends although the server says that another
 * page follows. Larger than {@link IDLE_PAGES}, because the list probably continues after a full page.
 */
const IDLE_FULL_PAGES = 6;
/**
 * Number of pages beyond the list offset `2 * total` after which a scan ends although the server says that another page follows. Used only
 * if the scan does not count keys.
 */
const PAGES_BEHIND = 10;

/** Detects that a scan makes no progress although the server says that more pages follow. */
export class Idleness {
  #shortPages = 0;
  #fullPages = 0;

  /**
   * Processes a page. Returns true if the scan ends with it although the server names a next page: the newest pages have no new records, or
   * the page lies far beyond `total`.
   */
  isOver(page: IdlePage): boolean {
    const { hasNewKey, isIdle, isShort, hasNext, end, total, pageSize } = page;
    if (!hasNext || (total !== undefined && end < total) || hasNewKey === true) {
      this.#shortPages = 0;
      this.#fullPages = 0;
      return false;
    }
    if (hasNewKey === undefined && !isIdle) {
      // Without a total, only consecutive pages show that the list has ended: a scan that steps back reads pages again now and then.
      if (total === undefined) this.#shortPages = this.#fullPages = 0;
      return total !== undefined && end > 2 * total + PAGES_BEHIND * pageSize;
    }
    if (isShort) this.#shortPages += 1;
    else this.#fullPages += 1;
    return this.#shortPages >= IDLE_PAGES || this.#fullPages >= IDLE_FULL_PAGES;
  }
}

/** Detects that the server begins pages at other offsets than requested. */
export class PageShift {
  /**
   * Observations on the newest pages of the scan:
   *
   * - `not`: no sign that pages begin at other offsets than requested;
   * - `once`: a page had no record of the page before it;
   * - `once, and the page before had nothing new`: that page before it, read again, ended with the same record as at first.
   */
  #missed: 'not' | 'once' | 'once, and the page before had nothing new' = 'not';

  /**
   * Processes a page of a scan. Returns true if the server begins pages at other offsets than requested, after three observations in a row:
   *
   * - A page has no record of the previous page.
   * - The previous page, read again, has nothing new.
   * - The page itself, requested again, still has no record of the previous page.
   *
   * @param at Position from which the page was requested.
   * @param anchored Whether the page has an anchor: a record that was read before, with the same content.
   */
  isStuck(at: Position, records: PageRecords, anchored: boolean): boolean {
    if (at.isBlind) return false;
    if (anchored) {
      if (!isIdle(at, records)) this.#missed = 'not';
      else if (this.#missed === 'once') this.#missed = 'once, and the page before had nothing new';
      return false;
    }
    if (sharesRecord(at, records)) return false; // its records have changed content, which is a different trouble
    const isStuck = this.#missed === 'once, and the page before had nothing new';
    this.#missed = 'once';
    return isStuck;
  }
}

/** Whether a page ends with the same record as the previous page. It then probably has no new records. */
export function isIdle({ anchors }: Position, records: PageRecords): boolean {
  const last = anchors.at(-1)?.at(-1)?.[0];
  return last !== undefined && records.at(records.length - 1)?.key === last;
}

/** Whether a page contains the key of one of the previous page's anchors (records that were chosen to join later pages to it). */
function sharesRecord({ anchors }: Position, records: PageRecords): boolean {
  const { keys } = records;
  const has = keys
    ? (key: string) => keys.placeOf(key) !== undefined
    : (key: string) => records.all().some((record) => record.key === key);
  return anchors.at(-1)?.some(([key]) => has(key)) ?? false;
}
