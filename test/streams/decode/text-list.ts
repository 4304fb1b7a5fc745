import { delay, of } from 'rxjs';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Answer, ListRequest } from '../../../src/streams/decode/response.ts';
import { decodedList } from '../../../src/streams/decode/list-request.ts';
import type { DecodedListOptions } from '../../../src/streams/decode/list-request.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import type { AnswerOptions } from '../../../src/streams/http/answer-rules.ts';
import { pageRequest } from '../../../src/streams/http/page-request.ts';
import type { PageRequestOptions } from '../../../src/streams/http/page-request.ts';
import { RequestPlan } from '../../../src/streams/http/request-plan.ts';
import { answering } from '../../support/answering.ts';
import { hurriedTime } from '../../support/hurried-time.ts';

/** The orders of the wine API. */
export const ORDERS = listNamed(WINE, 'orders');

/** With it a server ends its answer, in the middle of a record. */
export const END = '\0';

/** A page, up to the first {@link END}. */
export function pageText(
  texts: readonly string[],
  offset: number,
  pageSize: number,
  pagination?: string,
): string {
  const data = texts.slice(offset, offset + pageSize);
  const has_next_page = offset + pageSize < texts.length;
  const about = pagination ?? JSON.stringify({ total_records: texts.length, has_next_page });
  return `{"data":[${data.join(',')}],"pagination":${about}}`.split(END, 1)[0]!;
}

/** How a list is asked for, and how its pages are decoded: of one whose decoder, or what it knows, is one's own. */
export type ListOptions = PageRequestOptions &
  AnswerOptions &
  Partial<Pick<DecodedListOptions, 'list'>> &
  Pick<DecodedListOptions, 'decode' | 'texts' | 'failingOffsets' | 'plan' | 'inspect' | 'hide'>;

/** A list request as the service makes it. */
export function listOf(options: ListOptions): ListRequest {
  const { logicalClock = new LogicalClock() } = options;
  const requests = new RequestPlan(options);
  const request = pageRequest(requests, { ...options, logicalClock });
  return decodedList({ ...options, url: requests.url, request, logicalClock });
}

/** The list request of a server that gives these texts: what it was asked for, as `offset+pageSize`, and how long it waited. */
export function requestOf(
  page: (offset: number, pageSize: number) => string,
  options: Partial<ListOptions> = {},
): { readonly list: ListRequest; readonly met: string[]; readonly waits: readonly number[] } {
  const met: string[] = [];
  const { scheduler, waits } = hurriedTime();
  const dispatcher = answering(({ path }) => {
    const query = new URL(String(path), 'http://list').searchParams;
    const [offset, pageSize] = [Number(query.get('offset') ?? 0), Number(query.get('pageSize'))];
    met.push(`${offset}+${pageSize}`);
    if (met.length > 5_000) throw new Error('the requests do not end');
    return Promise.resolve({ status: 200, headers: {}, text: page(offset, pageSize) });
  });
  const token = { text: 't', askedAt: 0, lifeMs: 1e9, serverTime: 0 };
  const list = listOf({
    baseUrl: new URL('http://list'),
    list: ORDERS,
    dispatcher,
    tokens: {
      token$: of(token).pipe(delay(0)),
      current: () => token,
      report: () => ({ isFinal: true, pauseMs: undefined, logsIn: false }),
    },
    scheduler,
    random: () => 1,
    ...options,
  });
  return { list, met, waits };
}

/** What of an answer can be held against what is expected: its records, and the texts of those that are none. */
export const shownIn = ({ data }: Answer): unknown[] =>
  data.map(({ json, unreadableAt }) =>
    unreadableAt === undefined ? json : `${unreadableAt}: ${json as string}`,
  );
