import type { Answer } from '../streams/decode/response.ts';
import type { PagePlace, PagePlan } from '../streams/http/page-plan.ts';
import { keyOfFields } from '../streams/records/key-of.ts';

/**
 * List offset of the request that tests paging. If the API moves list offsets to multiples of the page size, the response shows it, unless
 * the page size is 1 or 3.
 */
const ODD_OFFSET = 3;

export interface PagingToCheck {
  readonly pageSize: number;
  readonly keyFields: readonly string[];
  /**
   * Paging properties of the list, as observed so far. `isWhole`: the API has refused or rounded a list offset that is not a multiple of
   * the page size.
   */
  readonly plan: Pick<PagePlan, 'isWhole'>;
}

/**
 * Requests a page at an unusual list offset, and returns a warning for each way in which the response differs from the request. Sends no
 * request if the list has no total, or if its total is at most {@link ODD_OFFSET}.
 *
 * @param first The list's first page.
 */
export async function checkPaging(
  first: Answer,
  ask: (place: PagePlace) => Promise<Answer>,
  { pageSize, keyFields, plan }: PagingToCheck,
): Promise<readonly string[]> {
  const { total } = first;
  if (total === undefined || total <= ODD_OFFSET) return [];
  const odd = await ask({ offset: ODD_OFFSET, pageSize });
  const keyOf = keyOfFields(keyFields);
  const [begin, oddBegin] = [first, odd].map(({ data }) => data[0] && keyOf(data[0].json));
  // The list may change between the two requests, but is unlikely to move its first record behind three others.
  const isMoved =
    plan.isWhole || odd.offset !== undefined || (begin !== undefined && begin === oddBegin);
  const { length } = odd.data;
  // With whole pages the plan requests smaller pages, so a short page means nothing.
  const isShort = !plan.isWhole && length < Math.min(pageSize, total - ODD_OFFSET);
  const differences: string[] = [];
  if (isMoved) {
    differences.push(
      'the API refuses or changes an offset that is not a multiple of pageSize: `cellarstream run` requests only multiples, which takes up to a third more requests',
    );
  }
  if (isShort && odd.hasNext) {
    differences.push(
      `the API returns at most ${length} records a page, although PAGE_SIZE is ${pageSize}: \`cellarstream run\` reads these smaller pages, with more requests`,
    );
  }
  return differences;
}
