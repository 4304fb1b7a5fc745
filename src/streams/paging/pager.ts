// How a scan requests the pages of a list, and where it continues after each: one class for each kind of paging.

import { isPagedByOffset } from '../../description/description.ts';
import { showsEnd } from '../../description/levels.ts';
import type { ListDescription } from '../../description/description.ts';
import type { Answer } from '../decode/response.ts';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { PageRecords } from '../records/page-records.ts';
import { BEGINNING, MAX_EARLIER, replanned } from './anchors.ts';
import type { JoinResult, Position } from './anchors.ts';
import { PageShift } from './idleness.ts';
import type { ScanTrouble } from './scan-trouble.ts';

/** A received page, compared with what the scan has read before. */
export interface ReceivedPage {
  /** Position for which the page was requested. */
  readonly requested: Position;
  readonly place: PagePlace;
  readonly answer: Answer;
  readonly records: PageRecords;
  /** List offset of the page's first record. */
  readonly begin: number;
  /** List offset after the page's last record. */
  readonly end: number;
  readonly joint: JoinResult;
  readonly isIdle: boolean;
  /** Whether the page has a key that the scan had not read before; undefined if keys are not counted. */
  readonly hasNewKey: boolean | undefined;
  /** `total` minus the number of distinct records that the scan has read, at least 0; undefined if keys are not counted. */
  readonly missing: number | undefined;
}

/** Strategy for one kind of paging, such as by offset or by cursor: decides which page a scan requests next. */
export abstract class Pager {
  /**
   * Whether each page begins with records of the previous page, which shows that no record is missing between the two. If false, every page
   * is accepted.
   */
  abstract readonly overlaps: boolean;
  /** Returns list offset and size of the page to request when the scan is at the position `at`. */
  abstract placeAt(at: Position): PagePlace;
  /**
   * Returns the page that follows the page `place` if the list does not change meanwhile. Undefined (the default) if it is not known before
   * the response to `place` has arrived.
   *
   * @param step Number of records from the start of a page to the start of the next; 0 if unknown.
   * @param overlap Minimum number of records at the end of the page `place` that the returned page should contain, too.
   */
  placeAfter(_place: PagePlace, _step: number, _overlap: number): PagePlace | undefined {
    return undefined;
  }

  /**
   * Evaluates how the server served a page, and reports troubles to `tell`. If pages did not begin at the requested offsets, returns the
   * position from which to read again. Otherwise, and by default, returns undefined.
   */
  observe(_page: ReceivedPage, _tell: (trouble: ScanTrouble) => void): Position | undefined {
    return undefined;
  }

  /** Whether another page follows this one, judged from its response. */
  abstract hasNext(page: ReceivedPage): boolean;
  /**
   * Whether the list continues after an empty page, for example because the server filters the records of a page after choosing it.
   * Default: false.
   */
  continuesAfterEmpty(_page: ReceivedPage): boolean {
    return false;
  }

  /**
   * Returns the position after a page that continued the scan. Undefined if the response does not show the next page, or names the same
   * page again.
   */
  abstract next(page: ReceivedPage): Position | undefined;
  /**
   * Returns the position at which the scan continues after a page that was not accepted: an earlier page, or the beginning of the list.
   * Default: `joint`.
   *
   * @param at Position of the page that was not accepted.
   * @param joint Position that `joinPage` computed. If the server refused the cursor, it is `at` with `stepsBack` increased by one.
   */
  back(_at: Position, joint: Position): Position {
    return joint;
  }
}

/**
 * Creates the {@link Pager} for the kind of paging that a list has.
 *
 * @param plan Chooses list offsets and page sizes, if the list is paged by them.
 */
export function pagerOf(
  list: ListDescription | undefined,
  plan: PagePlan,
  pageSize: number,
): Pager {
  const size = Math.min(pageSize, list?.limit ?? Infinity);
  if (!list) return new OffsetPager(plan, Math.max(2, size), false);
  if (isPagedByOffset(list)) return new OffsetPager(plan, Math.max(2, size), !showsEnd(list));
  return list.paging === 'after' ? new AfterPager(size, list) : new CursorPager(size, list);
}

/** Paging by list offset, or by page number with a page size that the request states: any page can be requested. */
class OffsetPager extends Pager {
  readonly overlaps = true;
  readonly #plan: PagePlan;
  readonly #pageSize: number;
  readonly #endsEmpty: boolean;
  readonly #shift = new PageShift();
  /**
   * The newest page if it had records, but fewer than requested; otherwise undefined. Recorded only in lists in which nothing but an empty
   * page shows the end.
   */
  #shortPage:
    { readonly place: PagePlace; readonly length: number; readonly end: number } | undefined;
  #isCounted = false;
  /**
   * Whether the page plan knew before the newest page that the server serves pages of a single size only. If a page after the first shows
   * this, the scan begins again.
   */
  #wasFixed: boolean;

  /** @param endsEmpty Whether only an empty page shows where the list ends. */
  constructor(plan: PagePlan, pageSize: number, endsEmpty: boolean) {
    super();
    this.#plan = plan;
    this.#pageSize = pageSize;
    this.#endsEmpty = endsEmpty;
    this.#wasFixed = plan.isFixed;
  }

  placeAt({ offset, pageSize: size }: Position): PagePlace {
    const isPlanned = size !== undefined && offset % size === 0;
    return isPlanned ? { offset, pageSize: size } : this.#plan.at(offset, this.#pageSize);
  }

  override placeAfter({ offset, pageSize }: PagePlace, step: number, overlap: number) {
    const plan = this.#plan;
    if (this.#endsEmpty && !this.#isCounted) return undefined; // may lie behind the end
    let next: PagePlace | undefined;
    if (plan.isWhole) next = plan.next(offset + pageSize, overlap, this.#pageSize);
    else if (step > 0) next = plan.at(offset + step, this.#pageSize);
    return next && next.offset < plan.servedTo
      ? { offset: next.offset, pageSize: next.pageSize }
      : undefined;
  }

  override observe(page: ReceivedPage, tell: (trouble: ScanTrouble) => void): Position | undefined {
    const { requested, place, answer, records, begin, end, joint } = page;
    const plan = this.#plan;
    const { length } = records;
    const { total, reported } = answer;
    this.#isCounted = total !== undefined;
    // Servers that wrap around claim a next page even after the end.
    const hasNext = answer.hasNext && end < (total ?? (this.#endsEmpty ? 0 : Infinity));
    if (!answer.hasGap) plan.saw({ place, length, hasNext, reported });
    if (this.#endsEmpty) this.#observeEnd(page);
    const isElsewhere =
      length > 0 && reported?.offset !== undefined && reported.offset !== place.offset;
    const isStuck = this.#shift.isStuck({ ...requested, offset: begin }, records, joint.anchored);
    const wasWhole = plan.isWhole;
    if (!wasWhole && (isElsewhere || isStuck)) plan.foundWhole();
    if (wasWhole && isStuck) plan.foundStuck();
    plan.findings().forEach(tell);
    if (plan.isFixed && !this.#wasFixed) {
      this.#wasFixed = true;
      if (begin > 0) return BEGINNING; // the pages so far did not begin at the requested offsets
    }
    return !wasWhole && plan.isWhole && isElsewhere ? replanned(requested) : undefined;
  }

  hasNext({ answer }: ReceivedPage): boolean {
    return answer.hasNext;
  }

  /**
   * Detects that the server serves no pages of the requested size: a page with fewer records was not the last one. Reports that page to the
   * page plan, which may then reduce the page size.
   */
  #observeEnd({ place, begin, end, records: { length } }: ReceivedPage): void {
    const short = this.#shortPage;
    if (short?.end === begin && length > 0) {
      this.#plan.saw({ ...short, hasNext: true, reported: undefined });
    }
    this.#shortPage = length > 0 && length < place.pageSize ? { place, length, end } : undefined;
  }

  /**
   * Returns the position of the next page. It normally begins some records before the end of this page, but exactly at its end if this page
   * has no new records and only an empty page shows where the list ends.
   */
  next({ requested, joint, end, records, isIdle }: ReceivedPage): Position {
    const { next } = joint;
    // A page that is read again has no new records, wherever the list ends.
    if (this.#endsEmpty && isIdle && !isReadAgain(requested)) {
      const { pageSize } = this.#plan.from(end, this.#plan.limit(this.#pageSize));
      return { ...next, offset: end, step: Math.max(1, records.length), pageSize };
    }
    if (!this.#plan.isWhole) return next;
    const { isBlind, ...place } = this.#plan.next(end, end - next.offset, this.#pageSize);
    const step = Math.max(1, place.offset - next.offset + next.step);
    return { ...replanned(next), ...place, step, ...(isBlind && { isBlind }) };
  }
}

/** Paging in which only the previous page shows how to request the next one. Therefore pages are never requested ahead. */
abstract class SequentialPager extends Pager {
  protected readonly list: ListDescription;
  readonly #pageSize: number;

  constructor(pageSize: number, list: ListDescription) {
    super();
    this.#pageSize = pageSize;
    this.list = list;
  }

  placeAt({ offset, cursor }: Position): PagePlace {
    return { offset, pageSize: this.#pageSize, ...(cursor !== undefined && { cursor }) };
  }
}

/**
 * Paging by the key of a record: each request names a key, and the server returns the records after it. Pages overlap, because a request
 * names the key of a record some places before the end of the previous page. If that record has been deleted, some servers refuse the
 * request or return the beginning of the list. The scan then steps back to the start of an earlier page.
 */
class AfterPager extends SequentialPager {
  readonly overlaps = true;

  /**
   * Whether the list continues after this page:
   *
   * - An empty page ends the list.
   * - If responses show whether the list continues, the response to this page decides.
   * - Otherwise the list ends once a page ends with the same record as the previous page. A page that is read again does not end the list.
   */
  hasNext({ requested, answer, records, isIdle }: ReceivedPage): boolean {
    if (records.length === 0) return false;
    if (this.list.more !== undefined) return answer.hasNext;
    // A `total` does not show the end: once records before the page are deleted, it is smaller than the number of records read.
    return isReadAgain(requested) || !isIdle;
  }

  next({ requested, begin, records, joint }: ReceivedPage): Position | undefined {
    let last = joint.next.offset - begin - 1;
    while (last >= 0 && records.at(last)?.key === undefined) last -= 1; // an unreadable record has no key
    if (last < 0) return undefined;
    const { offset, cursor, earlier = [] } = requested;
    return {
      ...joint.next,
      offset: begin + last + 1,
      step: last + 1,
      cursor: records.at(last)!.key!,
      earlier: [...earlier, { offset, ...(cursor !== undefined && { cursor }) }].slice(
        -MAX_EARLIER,
      ),
    };
  }

  override back({ earlier = [] }: Position, joint: Position): Position {
    const { offset, cursor } = earlier.at(-1) ?? { offset: 0 };
    const position = { ...replanned(joint), offset, earlier: earlier.slice(0, -1) };
    return cursor === undefined ? position : { ...position, cursor };
  }
}

/**
 * Paging by a value in the previous response (a cursor, or the address of the next page), or by page number if the server chooses the page
 * size. Pages cannot overlap. A list without paging is read as a single page.
 */
class CursorPager extends SequentialPager {
  readonly overlaps = false;

  hasNext({ answer, records }: ReceivedPage): boolean {
    return answer.hasNext && (records.length > 0 || this.list.next !== undefined);
  }

  override continuesAfterEmpty({ requested, answer }: ReceivedPage): boolean {
    const { next } = answer;
    return answer.hasNext && next !== undefined && next !== requested.cursor;
  }

  next({ requested, answer, begin, records }: ReceivedPage): Position | undefined {
    const cursor = this.#cursorAfter(requested, answer);
    if (cursor === undefined || cursor === requested.cursor) return undefined;
    return { ...BEGINNING, offset: begin + records.length, step: records.length, cursor };
  }

  override back(): Position {
    return BEGINNING;
  }

  #cursorAfter({ cursor }: Position, { next }: Answer): string | undefined {
    const { paging, first } = this.list;
    return paging === 'page' ? String(Number(cursor ?? first) + 1) : next;
  }
}

/**
 * Whether a page at this position may have no new records although the list continues: the scan has stepped back, or accepts the page
 * without an anchor.
 */
function isReadAgain({ stepsBack, isBlind }: Position): boolean {
  return stepsBack > 0 || isBlind === true;
}
