import type { PageRecords } from '../records/page-records.ts';
import type { Position } from './anchors.ts';

/** A page that joined, as far as it shows whether the list goes on. */
interface IdlePage {
  /** Whether it has a key that this scan had not read; undefined if keys are not counted. */
  readonly isNews: boolean | undefined;
  /** It ends with the last record of the page before. */
  readonly isIdle: boolean;
  /** It has fewer records than were asked for. */
  readonly isShort: boolean;
  readonly hasNext: boolean;
  /** Offset behind its last record. */
  readonly end: number;
  /** `total_records`; undefined where the server sends none. */
  readonly total: number | undefined;
  /** Records a page, as the scan wants them. */
  readonly pageSize: number;
}

/** Pages without news at the end of a list after which it is over. Too small: a list that moves may end early. */
const IDLE_PAGES = 3;
/** The same of full pages, which the end of a list does not have. */
const IDLE_FULL_PAGES = 6;
/** A scan without counted keys ends that many pages behind twice the total. */
const PAGES_BEHIND = 10;

/** Watches a scan that comes no further although the server claims more pages. */
export function idleness() {
  let missed: 'not' | 'once' | 'once, and the page before had nothing new' = 'not';
  let pages = 0;
  let fullPages = 0;

  return {
    /**
     * Whether pages begin elsewhere than asked: a page had nothing in common with the one before, which was then
     * read again and had nothing new, and the page has nothing in common with it again.
     */
    isStuck: (at: Position, records: PageRecords, anchored: boolean): boolean => {
      if (at.isBlind) return false;
      if (anchored) {
        if (!isIdle(at, records)) missed = 'not';
        else if (missed === 'once') missed = 'once, and the page before had nothing new';
        return false;
      }
      if (isFamiliar(at, records)) return false; // its records have changed: that is another trouble
      const isStuck = missed === 'once, and the page before had nothing new';
      missed = 'once';
      return isStuck;
    },
    /** Whether the list is over, whatever the server claims. */
    isOver: (page: IdlePage): boolean => {
      const { isNews, isIdle, isShort, hasNext, end, total, pageSize } = page;
      if (!hasNext || (total !== undefined && end < total) || isNews === true) {
        pages = 0;
        fullPages = 0;
        return false;
      }
      if (isNews === undefined && !isIdle) {
        return total !== undefined && end > 2 * total + PAGES_BEHIND * pageSize;
      }
      if (isShort) pages += 1;
      else fullPages += 1;
      return pages >= IDLE_PAGES || fullPages >= IDLE_FULL_PAGES;
    },
  };
}

/** Whether a page ends with the last record of the page before it, so that it has nothing new behind that. */
export function isIdle({ anchors }: Position, records: PageRecords): boolean {
  const last = anchors.at(-1)?.at(-1)?.[0];
  return last !== undefined && records.at(records.length - 1)?.key === last;
}

/** Whether a page shows some record of the page before it, changed or not. */
function isFamiliar({ anchors }: Position, records: PageRecords): boolean {
  const { keys } = records;
  const has = keys
    ? (key: string) => keys.placeOf(key) !== undefined
    : (key: string) => records.all().some((record) => record.key === key);
  return anchors.at(-1)?.some(([key]) => has(key)) ?? false;
}
