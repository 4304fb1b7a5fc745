// The decoded response for a page of a list.

import type { Observable } from 'rxjs';
import type { AnswerAge } from '../http/response-age.ts';
import type { Span } from '../http/logical-clock.ts';
import type { ListQuery } from '../http/page-request.ts';
import type { Limit } from '../quota/token-bucket.ts';
import type { PageRecord } from '../records/page-record.ts';
import { PageRecords } from '../records/page-records.ts';

/** Offset and size of a page as its response states them. Some servers repeat the requested values, whatever they served. */
export interface ReportedPlace {
  /** List offset of the page's first record. */
  readonly offset?: number;
  /** Page size that the response states, in records. */
  readonly pageSize?: number;
}

/** The decoded response to a request for a page or a single record. */
export interface Answer {
  /** All records of the page. For records recognized together by their bytes (runs), the objects are created on access. */
  readonly data: readonly PageRecord[];
  /**
   * The same records as in `data`. The objects of records that were recognized together by their bytes (a run) are created only on access.
   */
  readonly records?: PageRecords | undefined;
  /** Number of records in the list; undefined if the response states no plausible number. */
  readonly total: number | undefined;
  /**
   * Whether another page follows, as the response says. If it does not say: false if the page is empty or reaches the total, otherwise
   * true.
   */
  readonly hasNext: boolean;
  /** Cursor (paging `cursor`) or address (paging `link`) of the next page. Undefined if there is none, or with any other paging. */
  readonly next?: string | undefined;
  /**
   * Set if a single record was requested and the response says that it does not exist, by a status that the description lists in `gone`
   * (default 404). Such a response may also come from a proxy or gateway.
   */
  readonly notFound?: true;
  /** Offset and size of the page as the response states them. */
  readonly reported?: ReportedPlace;
  /** List offset of the first record, if it is known to differ from the requested one. */
  readonly offset?: number;
  /** Set if the page has a gap: records that make every page with them fail. Each is replaced by an unreadable record. */
  readonly hasGap?: true;
  /** Set if the API caps the list after this page: it serves no further records although the list has more. */
  readonly isCut?: true;
  /** Begin and end of the read, as numbers of the list's {@link LogicalClock}. */
  readonly span: Span;
  /**
   * Lower bound of the server's time when it read the records, in epoch ms. Undefined if neither this response nor the login response
   * stated the server's time.
   */
  readonly serverTime: number | undefined;
  /** Time from sending the request to the last byte of the response, in ms. Undefined counts as 0. */
  readonly elapsedMs?: number;
  /** Age of the response's content. If undefined, the content counts as produced after the request was sent. */
  readonly age?: AnswerAge | undefined;
}

export interface DecodedPage extends Pick<
  Answer,
  'total' | 'hasNext' | 'next' | 'notFound' | 'reported'
> {
  readonly records: PageRecords;
}

/** Waits for the quota (`limit`), then requests one page. Emits once and completes. */
export type ListRequest = (query: ListQuery, limit: Limit) => Observable<Answer>;

/** Returns a copy of the response with the given `total`. Like the original, the copy creates its records only on access. */
export function withTotal(answer: Answer, total: number | undefined): Answer {
  const members = Object.getOwnPropertyDescriptors(answer);
  return Object.defineProperties({} as Answer, {
    ...members,
    total: { value: total, enumerable: true },
  });
}

export function recordsOf(answer: Pick<Answer, 'data' | 'records'>): PageRecords {
  return answer.records ?? new PageRecords(answer.data);
}
