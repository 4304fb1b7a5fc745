import { whyRefused } from '../pipeline/reads/dated-scan.ts';
import { recordsOf } from '../streams/decode/answer.ts';
import type { Answer } from '../streams/decode/answer.ts';
import type { PagePlace } from '../streams/http/page-plan.ts';
import type { ProbeDates } from '../streams/paging/date-negotiation.ts';
import { dateText, window } from '../streams/paging/poll.ts';
import { isUsualCap, mayBeCut } from '../streams/paging/reading-proofs.ts';
import { keyOfFields } from '../streams/records/key-of.ts';

/** Records at the end of a list that are asked for. */
const TAIL = 3;
const A_DAY_MS = 86_400_000;
/** Records by which two windows must exceed the total of the whole list. Too small: a list that grows during the check looks capped. */
const MARGIN = 20;

/** The list whose total is checked. */
export interface TotalToCheck {
  /** `PAGE_SIZE`. */
  readonly pageSize: number;
  readonly keyFields: readonly string[];
  /** Whether the list reads modification dates as written. */
  readonly takesDates: boolean;
  /** ms on the local clock. */
  readonly now: number;
}

/**
 * Finds out whether a list is shown to its end, by one to six requests: its last records are asked for, then two windows of dates that together
 * have as many records as the list. If they have not, the record behind its total, and two windows that are further apart. A list on one page is not asked.
 *
 * @param first The list's first page.
 * @returns What is wrong, or may be; undefined if the list is shown whole.
 */
export async function checkTotal(
  first: Answer,
  ask: (query: ProbeDates & Partial<PagePlace>) => Promise<Answer>,
  list: TotalToCheck,
): Promise<string | undefined> {
  const { total_records: total, has_next_page: hasNext } = first.pagination;
  if (total === undefined || (!hasNext && first.data.length >= total)) return undefined;
  const tail = await ask({ offset: Math.max(0, total - TAIL), pageSize: TAIL });
  if (tail.isCut || recordsOf(tail).length === 0) {
    return `the API shows no record at the end of its total of ${total}: the list is cut off, and run publishes no deletion of it`;
  }
  if (!mayBeCut({ top: total, peak: total, lacksMass: false, fitsOnePage: total < list.pageSize }))
    return undefined;
  const middle = list.takesDates ? middleOf([first, tail]) : undefined;
  if (middle !== undefined) {
    const inTwo = await countInWindows(ask, middle, middle, list.now);
    if (inTwo !== undefined && Math.abs(inTwo - total) <= MARGIN) return undefined;
  }
  const keyOf = keyOfFields(list.keyFields);
  const known = new Set([first, tail].flatMap(({ data }) => data.map(({ json }) => keyOf(json))));
  const behind = await ask({ offset: total, pageSize: 1 });
  const isMore = behind.data.some(({ json }) => !known.has(keyOf(json)));
  // A server may read dates as whole days, and count those of a day twice: two days between the windows rule that out.
  const inTwoApart =
    isMore || middle === undefined
      ? undefined
      : await countInWindows(ask, middle - A_DAY_MS, middle + A_DAY_MS, list.now);
  if (isMore || (inTwoApart !== undefined && inTwoApart > total + MARGIN)) {
    return `total_records is capped at ${total}, and the list has more: run publishes no deletion until the total falls below that`;
  }
  if (!isUsualCap(total)) return undefined;
  return `total_records may be capped at ${total}: run publishes no deletion until the total changes`;
}

/** An instant between the dates of the first page and of the last one; undefined where a page has none. */
function middleOf(pages: readonly Answer[]): number | undefined {
  const [one, other] = pages.map((page) => {
    const stamps = recordsOf(page)
      .updatedAt()
      .filter((at) => at !== null)
      .sort((x, y) => x - y);
    return stamps[stamps.length >> 1];
  });
  return one === undefined || other === undefined ? undefined : (one + other) / 2;
}

/** The totals, added up, of the records modified up to an instant and of those from another one on; undefined if that can't be told. */
async function countInWindows(
  ask: (dates: ProbeDates) => Promise<Answer>,
  until: number,
  from: number,
  now: number,
): Promise<number | undefined> {
  const early = { ...window(0, 0), modifiedToDate: dateText(until) };
  try {
    const [before, after] = [await ask(early), await ask(window(from, now))].map(
      ({ pagination }) => pagination.total_records,
    );
    return before === undefined || after === undefined ? undefined : before + after;
  } catch (error) {
    if (whyRefused(error) !== undefined) return undefined;
    throw error;
  }
}
