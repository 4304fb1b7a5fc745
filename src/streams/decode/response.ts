// The decoded response for a page of a list, and the parsing of its pagination, of empty pages and of error bodies.

import type { Observable } from 'rxjs';
import { isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { AnswerAge } from '../http/response-age.ts';
import type { Body } from '../http/body.ts';
import type { Span } from '../http/logical-clock.ts';
import type { ListQuery } from '../http/page-request.ts';
import type { Limit } from '../quota/token-bucket.ts';
import type { PageRecord } from '../records/page-record.ts';
import { PageRecords } from '../records/page-records.ts';
import type { PagePart } from '../records/page-records.ts';

/** Offset and size of a page as its response states them. Some servers repeat the requested values, whatever they served. */
export interface ReportedPlace {
  /** `current_offset`: list offset of the page's first record. */
  readonly offset?: number;
  /** `page_size`: number of records per page. */
  readonly pageSize?: number;
}

/** The decoded response to a request for a page or a single record. */
export interface Answer {
  /** All records of the page. Those of known runs are created on access. */
  readonly data: readonly PageRecord[];
  /** The records of `data`. Reading them from here does not create the records of known runs. */
  readonly records?: PageRecords | undefined;
  /** Number of records in the list; undefined if the response states no plausible number. */
  readonly total: number | undefined;
  /** Whether the server claims that another page follows. */
  readonly hasNext: boolean;
  /** Set if a single record was requested and the response is a 404 whose body is not HTML. A proxy or gateway may have sent the 404. */
  readonly notFound?: true;
  /** Offset and size of the page as the response states them. */
  readonly reported?: ReportedPlace;
  /** List offset of the first record, if it is known to differ from the requested one. */
  readonly offset?: number;
  /** Set if the page has a gap: an unreadable record takes the place of a record that no response contains. */
  readonly hasGap?: true;
  /** Set if the API caps the list after this page: it serves no further records although the list has more. */
  readonly isCut?: true;
  /** Begin and end of the read, as numbers of the list's {@link LogicalClock}. */
  readonly span: Span;
  /**
   * Estimate of the server's time when the request was sent, in epoch ms. Never later than the actual time. Undefined before the first
   * `Date` header.
   */
  readonly serverTime: number | undefined;
  /** Time from sending the request to the last byte of the response, in ms. Undefined counts as 0. */
  readonly elapsedMs?: number;
  /** Age of the response. If undefined, the response counts as not older than its request. */
  readonly age?: AnswerAge | undefined;
}

export interface DecodedPage extends Pick<Answer, 'total' | 'hasNext' | 'notFound' | 'reported'> {
  readonly records: PageRecords;
}

/** Requests one page in a lane of the quota. Emits once and completes. */
export type ListRequest = (query: ListQuery, limit: Limit) => Observable<Answer>;

export function recordsOf(answer: Pick<Answer, 'data' | 'records'>): PageRecords {
  return answer.records ?? new PageRecords(answer.data);
}

/**
 * Creates a page from its records and the rest of the response (`envelope`); undefined if the envelope is not an object.
 *
 * @param offset List offset of the request.
 * @param body Body that holds the bytes of the records. It is released when the records are settled.
 */
export function decodedPageOf(
  envelope: JsonValue,
  parts: readonly PagePart[],
  offset: number,
  body?: Body,
): DecodedPage | undefined {
  if (!isJsonObject(envelope)) return undefined;
  const records = new PageRecords(parts, body);
  const told = isJsonObject(envelope.pagination) ? envelope.pagination : {};
  const { current_offset, page_size } = told;
  return {
    records,
    ...paginationOf(told, offset, records.length),
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
 * Parses a pagination in the forms in which servers send it: numbers and booleans as strings, `null`, an empty array for an empty object
 * (PHP), or no pagination at all. Without `has_next_page`, a list counts as continuing until its total is reached or a page is empty.
 */
function paginationOf(told: JsonObject, offset: number, length: number) {
  const total = countIn(told.total_records);
  const { current_offset = offset } = told;
  const reached = (countIn(current_offset) ?? offset) + length;
  const isMore = length > 0 && (total === undefined || reached < total);
  return { total, hasNext: flagIn(told.has_next_page) ?? isMore };
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

/** Whether a body without a list of records is the page of an empty list: `data` is null, or is absent although there is a pagination. */
export function isEmptyPage(body: JsonValue): boolean {
  if (!isJsonObject(body) || isErrorBody(body)) return false;
  const { data, pagination } = body;
  return data === null || (data === undefined && pagination !== undefined);
}

/**
 * Whether a body without records reports an error: some APIs answer an expired token with status 200, an error, and an empty list. A
 * `message` without a pagination counts as an error, unless `success` is true.
 */
export function isErrorBody(body: JsonObject): boolean {
  const { error, errors, success, ok, status, code, statusCode, message, pagination } = body;
  if (isPresent(error) || isPresent(errors) || success === false || ok === false) return true;
  if ([status, code, statusCode].some(isFailureCode)) return true;
  return isPresent(message) && pagination === undefined && success !== true;
}

function isFailureCode(value: JsonValue | undefined): boolean {
  if (typeof value === 'string') return /^(error|fail(ed|ure)?|[45]\d\d)$/i.test(value);
  return typeof value === 'number' && value >= 400 && value < 600;
}

function isPresent(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== false && value !== '';
}
