import { isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** Number of records and end of the list, as a page tells them. */
export interface Pagination {
  /** Undefined where the page tells no plausible number: then nothing can be compared with it. */
  readonly total_records: number | undefined;
  readonly has_next_page: boolean;
}

/** The part of a list that a page was answered with. */
export interface PageExtent {
  readonly offset: number;
  /** Number of its records. */
  readonly length: number;
}

/**
 * The pagination of a page in the forms in which servers write it: numbers and booleans as text, `null`, an empty array where there is
 * nothing to say (PHP), or no pagination at all. Without `has_next_page` a list goes on until its total is reached, or until
 * a page is empty.
 */
export function paginationOf(pagination: JsonValue | undefined, extent: PageExtent): Pagination {
  const { offset, length } = extent;
  const told = isJsonObject(pagination) ? pagination : {};
  const total_records = countIn(told.total_records);
  const { current_offset = offset } = told;
  const reached = (countIn(current_offset) ?? offset) + length;
  const isMore = length > 0 && (total_records === undefined || reached < total_records);
  return { total_records, has_next_page: flagIn(told.has_next_page) ?? isMore };
}

function countIn(value: JsonValue | undefined): number | undefined {
  const isDigits = typeof value === 'string' && /^\s*\d{1,15}\s*$/.test(value);
  const count = isDigits ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
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
