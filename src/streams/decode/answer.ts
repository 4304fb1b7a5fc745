import type { Observable } from 'rxjs';
import { isJsonObject } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import type { ListQuery } from '../http/list-query.ts';
import type { Span } from '../http/logical-clock.ts';
import type { PageRecord } from '../records/page-record.ts';
import type { Limit } from '../quota/token-bucket.ts';

/** What the API's list format says of a page, as far as it is relied on. */
export interface Pagination {
  readonly total_records: number;
  readonly has_next_page: boolean;
}

/** One page, as it was answered. */
export interface Answer {
  readonly data: readonly PageRecord[];
  readonly pagination: Pagination;
  /** The answer was a 404 that is no page of HTML, to a request for one record: who said it? */
  readonly notFound?: true;
  /** When the request was under way, in the order of things; see {@link LogicalClock}. */
  readonly span: Span;
  /** The server's clock at about the time of asking, never later: ms; undefined if it never told. */
  readonly serverTime: number | undefined;
  /** How long the answer took, from the request to its last byte, ms. Undefined counts as 0. */
  readonly elapsedMs?: number;
}

/** What an answer brings. */
export type Page = Pick<Answer, 'data' | 'pagination' | 'notFound'>;

/** Asks for one page; `limit` is the lane of the quota to wait in. Emits once and completes. */
export type ListRequest = (query: ListQuery, limit: Limit) => Observable<Answer>;

/** A page of these records, with what the answer around them says; undefined where something is missing in that. */
export function pageOf(envelope: JsonValue, data: readonly PageRecord[]): Page | undefined {
  const { pagination } = isJsonObject(envelope) ? envelope : {};
  const { total_records, has_next_page } = isJsonObject(pagination) ? pagination : {};
  return typeof total_records === 'number' && typeof has_next_page === 'boolean'
    ? { data, pagination: { total_records, has_next_page } }
    : undefined;
}
