import type { Observable } from 'rxjs';
import { isJsonObject } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import type { AnswerAge } from '../http/answer-age.ts';
import type { Body } from '../http/body.ts';
import type { ListQuery } from '../http/list-query.ts';
import type { Span } from '../http/logical-clock.ts';
import type { PageRecord } from '../records/page-record.ts';
import { PageRecords } from '../records/page-records.ts';
import type { PagePart } from '../records/page-records.ts';
import { paginationOf } from './pagination.ts';
import type { Pagination } from './pagination.ts';
import type { Limit } from '../quota/token-bucket.ts';

export type { Pagination };

/** Place of a page as its answer states it. Some servers repeat the request here, whatever page they served. */
export interface ReportedPlace {
  /** `current_offset`. */
  readonly offset?: number;
  /** `page_size`. */
  readonly pageSize?: number;
}

/** One page, as it was answered. */
export interface Answer {
  readonly data: readonly PageRecord[];
  /** The same, for who need not look at each: those that are known in runs are made when `data` is asked for. */
  readonly records?: PageRecords | undefined;
  readonly pagination: Pagination;
  /** The answer was a 404 that is no page of HTML, to a request for one record: who said it? */
  readonly notFound?: true;
  readonly reported?: ReportedPlace;
  /** Offset of the first record, if it is known to be another one than was asked for. */
  readonly offset?: number;
  /** The page has an unreadable record that no answer holds: every page with it fails. */
  readonly hasGap?: true;
  /** The API serves no record behind this page, although the list has more: the page ends at that place. */
  readonly isCut?: true;
  /** When the request was under way, in the order of things; see {@link LogicalClock}. */
  readonly span: Span;
  /** The server's clock at about the time of asking, never later: ms; undefined if it never told. */
  readonly serverTime: number | undefined;
  /** How long the answer took, from the request to its last byte, ms. Undefined counts as 0. */
  readonly elapsedMs?: number;
  /** How old its content may be. Undefined counts as not older than its request. */
  readonly age?: AnswerAge | undefined;
}

/** What an answer brings. */
export interface Page extends Pick<Answer, 'pagination' | 'notFound' | 'reported'> {
  readonly records: PageRecords;
}

/** Asks for one page; `limit` is the lane of the quota to wait in. Emits once and completes. */
export type ListRequest = (query: ListQuery, limit: Limit) => Observable<Answer>;

/** The records of an answer, those of runs not made. */
export function recordsOf(answer: Pick<Answer, 'data' | 'records'>): PageRecords {
  return answer.records ?? new PageRecords(answer.data);
}

/** The answer that a page came with. */
export function answerOf(
  page: Page,
  { span, serverTime, elapsedMs, age }: Pick<Answer, 'span' | 'serverTime' | 'elapsedMs' | 'age'>,
): Answer {
  return {
    ...page,
    span,
    serverTime,
    ...(elapsedMs !== undefined && { elapsedMs }),
    ...(age && { age }),
    get data() {
      return page.records.all();
    },
  };
}

/** Where a page of these records stands, and what they are parts of. */
export interface PageOptions {
  /** That of the request. */
  readonly offset: number;
  /** Given back when the records are dealt with. */
  readonly body?: Body;
}

/** A page of these records, with what the answer around them says; undefined where that is no object. */
export function pageOf(
  envelope: JsonValue,
  parts: readonly PagePart[],
  { offset, body }: PageOptions,
): Page | undefined {
  if (!isJsonObject(envelope)) return undefined;
  const records = new PageRecords(parts, body);
  const { length } = records;
  const { pagination } = envelope;
  return {
    records,
    pagination: paginationOf(pagination, { offset, length }),
    reported: reportedPlace(pagination),
  };
}

function reportedPlace(pagination: JsonValue | undefined): ReportedPlace {
  const { current_offset, page_size } = isJsonObject(pagination) ? pagination : {};
  return {
    ...(isCount(current_offset) && { offset: current_offset }),
    ...(isCount(page_size) && { pageSize: page_size }),
  };
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
