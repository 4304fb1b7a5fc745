// A page of a list as it was answered, and how an envelope tells its pagination, its end and its failures.

import type { Observable } from 'rxjs';
import { isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { AnswerAge } from '../http/answer-age.ts';
import type { Body } from '../http/body.ts';
import type { Span } from '../http/logical-clock.ts';
import type { ListQuery } from '../http/page-request.ts';
import type { Limit } from '../quota/token-bucket.ts';
import type { PageRecord } from '../records/page-record.ts';
import { PageRecords } from '../records/page-records.ts';
import type { PagePart } from '../records/page-records.ts';

/** Place of a page as its answer states it. Some servers repeat the request here, whatever page they served. */
export interface ReportedPlace {
  /** `current_offset`. */
  readonly offset?: number;
  /** `page_size`. */
  readonly pageSize?: number;
}

/** Number of records and end of the list, as a page tells them. */
export interface Pagination {
  /** Undefined where the page tells no plausible number: then nothing can be compared with it. */
  readonly total_records: number | undefined;
  readonly has_next_page: boolean;
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

/**
 * A page of these records, with what the answer around them says; undefined where that is no object.
 *
 * @param offset That of the request.
 * @param body Given back when the records are dealt with.
 */
export function pageOf(
  envelope: JsonValue,
  parts: readonly PagePart[],
  offset: number,
  body?: Body,
): Page | undefined {
  if (!isJsonObject(envelope)) return undefined;
  const records = new PageRecords(parts, body);
  const told = isJsonObject(envelope.pagination) ? envelope.pagination : {};
  const { current_offset, page_size } = told;
  return {
    records,
    pagination: paginationOf(told, offset, records.length),
    reported: {
      ...(isCount(current_offset) && { offset: current_offset }),
      ...(isCount(page_size) && { pageSize: page_size }),
    },
  };
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/**
 * The pagination of a page in the forms in which servers write it: numbers and booleans as text, `null`, an empty array where there is
 * nothing to say (PHP), or no pagination at all. Without `has_next_page` a list goes on until its total is reached, or until
 * a page is empty.
 */
function paginationOf(told: JsonObject, offset: number, length: number): Pagination {
  const total_records = countIn(told.total_records);
  const { current_offset = offset } = told;
  const reached = (countIn(current_offset) ?? offset) + length;
  const isMore = length > 0 && (total_records === undefined || reached < total_records);
  return { total_records, has_next_page: flagIn(told.has_next_page) ?? isMore };
}

function countIn(value: JsonValue | undefined): number | undefined {
  const isDigits = typeof value === 'string' && /^\s*\d{1,15}\s*$/.test(value);
  const count = isDigits ? Number(value) : value;
  return isCount(count) ? count : undefined;
}

const FLAGS: Readonly<Record<string, boolean>> = {
  true: true,
  false: false,
  '1': true,
  '0': false,
};

function flagIn(value: JsonValue | undefined): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  return FLAGS[String(value).trim().toLowerCase()];
}

/**
 * Whether a body without a list of records is the page of an empty list: `data` is null, or left out beside a pagination. A body that
 * speaks of a failure is none.
 */
export function isEmptyPage(body: JsonValue): boolean {
  if (!isJsonObject(body) || saysFailure(body)) return false;
  const { data, pagination } = body;
  return data === null || (data === undefined && pagination !== undefined);
}

/**
 * Whether a body without records speaks of a failure: some APIs answer an expired token with status 200, and an empty list beside
 * the error. A message in place of the pagination is taken for one, unless success is stated.
 */
export function saysFailure(body: JsonObject): boolean {
  const { error, errors, success, ok, status, code, statusCode, message, pagination } = body;
  if (isSaid(error) || isSaid(errors) || success === false || ok === false) return true;
  if ([status, code, statusCode].some(isFailureCode)) return true;
  return isSaid(message) && pagination === undefined && success !== true;
}

function isFailureCode(value: JsonValue | undefined): boolean {
  if (typeof value === 'string') return /^(error|fail(ed|ure)?|[45]\d\d)$/i.test(value);
  return typeof value === 'number' && value >= 400 && value < 600;
}

function isSaid(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== false && value !== '';
}
