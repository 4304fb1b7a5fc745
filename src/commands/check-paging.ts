import type { Answer } from '../streams/decode/answer.ts';
import type { PagePlace, PagePlan } from '../streams/http/page-plan.ts';
import { keyOfFields } from '../streams/records/key-of.ts';

/** An offset that is no multiple of any page size but 1 and 3: shows whether pages begin where they are asked for. */
const ODD_OFFSET = 3;

/** How the list is read. */
export interface PagingToCheck {
  /** `PAGE_SIZE`. */
  readonly pageSize: number;
  readonly keyFields: readonly string[];
  /** The plan that `ask` goes by: whole pages once the API has refused others. */
  readonly plan: Pick<PagePlan, 'isWhole'>;
}

/**
 * Asks for a page that begins elsewhere, and tells how it differs from what was asked for, a text each. The service adapts to each
 * difference, so they are warnings. A list without more than a few records is not asked.
 *
 * @param first The list's first page.
 */
export async function checkPaging(
  first: Answer,
  ask: (place: PagePlace) => Promise<Answer>,
  { pageSize, keyFields, plan }: PagingToCheck,
): Promise<readonly string[]> {
  const { total_records: total } = first.pagination;
  if (total === undefined || total <= ODD_OFFSET) return [];
  const odd = await ask({ offset: ODD_OFFSET, pageSize });
  const keyOf = keyOfFields(keyFields);
  const [begin, oddBegin] = [first, odd].map(({ data }) => data[0] && keyOf(data[0].json));
  // A list may move between the two requests, but hardly so that its first record comes after three others.
  const isMoved =
    plan.isWhole || odd.offset !== undefined || (begin !== undefined && begin === oddBegin);
  const { length } = odd.data;
  // The plan asks for smaller pages where they have to be whole.
  const isShort = !plan.isWhole && length < Math.min(pageSize, total - ODD_OFFSET);
  const isCapped = isShort && odd.pagination.has_next_page;
  return [
    ...(isMoved
      ? [
          'the API moves or refuses an offset that is no multiple of pageSize: run reads the list in whole pages, with up to a third more requests',
        ]
      : []),
    ...(isCapped
      ? [
          `the API gives at most ${length} records a page (PAGE_SIZE asks for ${pageSize}): run takes what comes, and needs more requests`,
        ]
      : []),
  ];
}
