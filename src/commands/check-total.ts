import { dateRefusal } from '../pipeline/reads/dated-scan.ts';
import { recordsOf } from '../streams/decode/response.ts';
import type { Answer } from '../streams/decode/response.ts';
import type { PagePlace } from '../streams/http/page-plan.ts';
import type { ProbeDates } from '../streams/paging/date-probe.ts';
import { window } from '../streams/paging/poll.ts';
import { isUsualCap, mayBeCut } from '../streams/paging/reading-proofs.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import type { TimeFormat } from '../description/time-format.ts';

/** Number of records requested at the end of the list, to test whether the API serves the list completely. */
const TAIL = 3;
const A_DAY_MS = 86_400_000;
/**
 * Maximum accepted difference, in records, between the total of the whole list and the sum of the totals of two windows (ranges of dates).
 * If it is too small, records that are added during the check look like records that the API does not serve.
 */
const MARGIN = 20;

export interface TotalToCheck {
  readonly pageSize: number;
  /** Name of the list's total in printed texts, such as `total_records`. */
  readonly totalName: string;
  readonly keyFields: readonly string[];
  /** Whether the API interprets modification dates in requests as documented. */
  readonly takesDates: boolean;
  /** Notation of dates in requests. */
  readonly times: TimeFormat;
  /** Current time by the local clock, in epoch ms. */
  readonly now: number;
}

/**
 * Checks whether the API serves a list to its end, with at most six requests. The first of these steps with a result decides:
 *
 * 1. If the API does not serve the records at the end of the list, the list is capped.
 * 2. If the total is smaller than a page, or not a number at which APIs stop counting, the list is not capped.
 * 3. If two windows that together span all modification dates have about as many records as the total says, the list is not capped.
 * 4. If the API serves a record beyond the total, the list is capped.
 * 5. If two windows with a gap between them have more records than the total says, the list is capped.
 *
 * Steps 3 and 5 are skipped unless the API interprets dates as documented.
 *
 * @param first The list's first page.
 * @returns A description of the problem, if the list is capped or may be capped. Otherwise undefined.
 */
export async function checkTotal(
  first: Answer,
  ask: (query: ProbeDates & Partial<PagePlace>) => Promise<Answer>,
  list: TotalToCheck,
): Promise<string | undefined> {
  const { total, hasNext } = first;
  if (total === undefined || (!hasNext && first.data.length >= total)) return undefined;
  const tail = await ask({ offset: Math.max(0, total - TAIL), pageSize: TAIL });
  if (tail.isCut || recordsOf(tail).length === 0) {
    return `the API reports a total of ${total} records, but returns none at the end of the list: the list is capped, and \`cellarstream run\` publishes no deletions from it`;
  }
  if (!mayBeCut({ top: total, peak: total, lacksMass: false, fitsOnePage: total < list.pageSize }))
    return undefined;
  const middle = list.takesDates ? middleOf([first, tail]) : undefined;
  if (middle !== undefined) {
    const inTwo = await countInWindows(ask, middle, middle, list);
    if (inTwo !== undefined && Math.abs(inTwo - total) <= MARGIN) return undefined;
  }
  const keyOf = keyOfFields(list.keyFields);
  const known = new Set([first, tail].flatMap(({ data }) => data.map(({ json }) => keyOf(json))));
  const behind = await ask({ offset: total, pageSize: 1 });
  const isMore = behind.data.some(({ json }) => !known.has(keyOf(json)));
  // A server may read dates as whole days and count one day's records in both windows: a gap of two days between the windows rules that
  // out.
  const inTwoApart =
    isMore || middle === undefined
      ? undefined
      : await countInWindows(ask, middle - A_DAY_MS, middle + A_DAY_MS, list);
  if (isMore || (inTwoApart !== undefined && inTwoApart > total + MARGIN)) {
    return `${list.totalName} is capped at ${total}, although the list has more records: no deletion from this list is published until ${list.totalName} is below ${total}`;
  }
  if (!isUsualCap(total)) return undefined;
  return `${list.totalName} may be capped at ${total}: no deletion from this list is published until ${list.totalName} changes`;
}

/**
 * Returns the midpoint between the median modification time of the first page and the median of the last page, in epoch ms; undefined if a
 * page has no modification times.
 */
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

/**
 * Returns the number of records modified until `until` plus the number of those modified since `from` (epoch ms), from the totals of two
 * responses. Undefined if the API reports no totals or refuses the dates.
 */
async function countInWindows(
  ask: (dates: ProbeDates) => Promise<Answer>,
  until: number,
  from: number,
  { now, times }: TotalToCheck,
): Promise<number | undefined> {
  const early = { ...window(0, 0, times), to: times.write(until) };
  try {
    const [before, after] = [await ask(early), await ask(window(from, now, times))].map(
      ({ total }) => total,
    );
    return before === undefined || after === undefined ? undefined : before + after;
  } catch (error) {
    if (dateRefusal(error) !== undefined) return undefined;
    throw error;
  }
}
