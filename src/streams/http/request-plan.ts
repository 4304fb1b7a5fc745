// The requests of one list, as its description states them.

import { CellarstreamError } from '../../core/errors.ts';
import { totalRequestOf } from '../../description/description.ts';
import type { ListDescription } from '../../description/description.ts';
import { filled, filledBody, filledParameters } from '../../description/template.ts';
import type { Parameters, Variables } from '../../description/template.ts';
import type { HttpRequest } from './http.ts';

/** Query of a list: a page, a page of a window of modification dates, a single record, or the total number of records. */
export interface ListQuery {
  /** Number of records to skip (the list offset). */
  readonly offset?: number;
  /** Number of records per page. */
  readonly pageSize?: number;
  /**
   * Start of the requested page in a list that is not paged by offset; undefined for the first page. It is the address of the page (paging
   * `link`), the number of the page (if requests do not state a page size), or the value of the variable `{after}` or `{cursor}` in the
   * list's description.
   */
  readonly cursor?: string;
  /** Begin of the window of modification dates, in the API's notation of dates. If undefined, the request has no window. */
  readonly from?: string;
  /** End of the window of modification dates, in the API's notation of dates. If undefined, the window has no end. */
  readonly to?: string;
  /** Key of the single record to request. */
  readonly key?: string;
  /** Set to request the number of records instead of records, with the separate request that the list's description has for it. */
  readonly isTotal?: true;
}

/** Options of `RequestPlan`: base URL, description of the list, and headers and parameter values for its requests. */
export interface RequestPlanOptions {
  /** Base URL of the API, such as `https://api.example`. The paths of the description are appended to it. */
  readonly baseUrl: URL;
  readonly list: ListDescription;
  /** Headers that the API's description gives for every request. Default none. */
  readonly headers?: Parameters | undefined;
  /** Values of the description's parameters, by name. Default none. */
  readonly parameters?: Variables | undefined;
}

/** A request of a list, without the token. */
export interface PlannedRequest extends Pick<HttpRequest, 'method' | 'url' | 'body'> {
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Values of the page variables in {@link RequestPlan.url}, which is shown in messages and never requested. Each variable gets its own name
 * as its value: `{offset}` becomes `offset`.
 */
const NO_PAGE: Variables = Object.fromEntries(
  ['offset', 'page', 'after', 'cursor', 'limit', 'from', 'to'].map((name) => [name, name]),
);

/** Makes the requests of one list from the list's description. */
export class RequestPlan {
  /** Address of the list, as shown in messages: without query parameters, and with the names of page variables in place of their values. */
  readonly url: URL;
  readonly list: ListDescription;
  readonly #baseUrl: URL;
  readonly #parameters: Variables;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ baseUrl, list, headers = {}, parameters = {} }: RequestPlanOptions) {
    this.#baseUrl = baseUrl;
    this.list = list;
    this.#parameters = parameters;
    this.#headers = headersOf(headers, parameters);
    this.url = addressOf(baseUrl, list.path, { ...NO_PAGE, ...parameters });
  }

  /**
   * Returns the request for a page of the list, for a single record if the query has `key`, or for the total alone if the query has
   * `isTotal` and the list has a separate request for it.
   *
   * @throws RangeError for a key if the list has no single reads, for a path variable without a value, and for a page that is requested by
   * its number but does not begin at a multiple of its size.
   * @throws CellarstreamError `API_STATUS` if the address of the next page has another origin than the base URL.
   */
  requestOf({ offset, pageSize, cursor, from, to, key, isTotal }: ListQuery): PlannedRequest {
    const { name, path, query, dates, method, body, one, paging } = this.list;
    const variables = {
      ...this.#parameters,
      ...{ offset, limit: pageSize, from, to, key, after: cursor, cursor },
      ...(paging === 'page' && { page: cursor ?? this.#pageNumber(offset, pageSize) }),
    };
    const headers = this.#headers;
    const urlOf = (template: string, parameters: Parameters) => {
      const url = addressOf(this.#baseUrl, template, variables);
      for (const [parameter, value] of filledParameters(parameters, variables)) {
        url.searchParams.append(parameter, value);
      }
      return url;
    };
    if (key !== undefined) {
      if (!one)
        throw new RangeError(
          `the list ${name} of the description has no \`one\`, the request for a single record`,
        );
      return { method: 'GET', url: urlOf(one.path, one.query), headers };
    }
    const total = isTotal && totalRequestOf(this.list);
    if (total) return { method: 'GET', url: urlOf(total.path, total.query ?? {}), headers };
    const isLinked = paging === 'link' && cursor !== undefined;
    const url = isLinked
      ? this.#linked(cursor)
      : urlOf(path, from === undefined ? query : { ...dates, ...query });
    if (body === undefined) return { method, url, headers };
    return {
      ...{ method, url, body: JSON.stringify(filledBody(body, variables)) },
      headers: { 'content-type': 'application/json', ...headers },
    };
  }

  #pageNumber(offset = 0, pageSize = 1): number {
    const number = offset / pageSize + this.list.first;
    if (Number.isInteger(number)) return number;
    throw new RangeError(
      `the list offset ${offset} is not a multiple of the page size ${pageSize}`,
    );
  }

  /**
   * Returns the URL of the next page. `address` is the address from the response: absolute, or relative to the list's address.
   *
   * @throws CellarstreamError `API_STATUS` if the URL is not valid, or has another origin than the list.
   */
  #linked(address: string): URL {
    const { origin, href } = addressOf(this.#baseUrl, this.list.path, this.#parameters);
    const url = URL.parse(address, href);
    if (url?.origin === origin) return url;
    throw new CellarstreamError(
      'API_STATUS',
      `${this.list.name}: the address of the next page has the origin ${url?.origin ?? '(none)'}, but the token is sent to ${origin} only: correct API_BASE_URL, or \`next\` of this list in the description`,
      { context: { isCursorRefused: true } },
    );
  }
}

/** Returns a description's headers with the values of its parameters. Names are in lower case, so that each is sent once. */
export function headersOf(headers: Parameters, parameters: Variables): Record<string, string> {
  return Object.fromEntries(
    filledParameters(headers, parameters).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/**
 * Appends a path of the description to the base URL. The result has the origin of the base URL: credentials are sent to no other.
 *
 * @throws RangeError if a variable of the path has no value, or the path does not begin with a slash.
 */
export function addressOf(baseUrl: URL, path: string, variables: Variables): URL {
  const text = filled(path, variables, encodeURIComponent);
  if (text === undefined)
    throw new RangeError(
      `the path ${path} has a variable without a value: pass the values of all variables in \`parameters\`, or in the query of the request`,
    );
  if (!text.startsWith('/'))
    throw new RangeError(
      `the path ${path} of the description does not begin with /: it is appended to the base URL`,
    );
  return new URL(baseUrl.href.replace(/\/$/, '') + text);
}
