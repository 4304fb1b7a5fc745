import { asyncScheduler, catchError, defer, finalize, map, of, switchMap, take, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../errors.ts';
import { isJsonObject, parseJson } from '../schemas/json.ts';
import type { JsonValue } from '../schemas/json.ts';
import { pageElements, parsedElement } from '../schemas/page-elements.ts';
import { backoff } from './backoff.ts';
import type { Retry } from './backoff.ts';
import { exchange, statusError, where } from './http.ts';
import type { AnswerSeen, HttpAnswer } from './http.ts';
import type { ElementReader, Sent } from './sent-record.ts';
import { readClock as newReadClock } from './read-clock.ts';
import type { ReadClock, Span } from './read-clock.ts';
import { stepwise } from './stepwise.ts';
import type { Token } from './login.ts';
import type { TokenSource } from './token.ts';
import { during } from './token-bucket.ts';
import type { Limit } from './token-bucket.ts';

/** The query of a list request; what is left out is not sent. */
export interface ListQuery {
  /** Records to skip. */
  readonly offset?: number;
  /** Records a page; the API allows 1 to 1,000. */
  readonly pageSize?: number;
  /** ISO 8601; the API takes `modifiedToDate` only beside it. */
  readonly modifiedFromDate?: string;
  readonly modifiedToDate?: string;
  readonly orderNumber?: string;
}

/** The envelope's account of a page, as far as it is relied on. */
export interface Pagination {
  readonly total_records: number;
  readonly has_next_page: boolean;
}

/** One page, as it was answered. */
export interface Answer {
  readonly data: readonly Sent[];
  readonly pagination: Pagination;
  /** The answer was a 404 that is no page of HTML, to a request for one record: who said it? */
  readonly notFound?: true;
  /** When the request was under way, in the order of things; see {@link ReadClock}. */
  readonly span: Span;
  /** The server's clock at about the time of asking, never later: ms; undefined if it never told. */
  readonly serverTime: number | undefined;
  /** How long the answer took, from the request to its last byte, ms. Undefined counts as 0. */
  readonly elapsedMs?: number;
}

/** Asks for one page; `limit` is the lane of the quota to wait in. Emits once and completes. */
export type ListRequest = (query: ListQuery, limit: Limit) => Observable<Answer>;

/** What {@link listRequest} needs. */
export interface ListRequestOptions {
  /** The list's address, such as `https://api.example/v1/orders`. */
  readonly url: URL;
  /** Connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  readonly tokens: TokenSource;
  /** How the list has taken to tokens; kept by whoever makes its request again. Default a new one. */
  readonly refusals?: Refusals;
  /** Orders the requests that may meet the same records: one clock a resource. Default its own. */
  readonly readClock?: ReadClock;
  /** Reads the elements of a page. Default: they are parsed. */
  readonly read?: ElementReader;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1), for the jitter. Default Math.random. */
  readonly random?: () => number;
  /** Largest page accepted, in bytes after decompression. Default 64 MiB. */
  readonly maxPageBytes?: number;
  /** Told of every request as it ends, refused ones and those without an answer included. */
  readonly onAnswer?: (answer: AnswerSeen) => void;
  /** Told of every try that failed and is made again. */
  readonly onRetry?: (retry: Retry) => void;
}

/** Refusals (401, 403) of a list in a row, each of another token. */
export interface Refusals {
  count: number;
}

/**
 * Makes the list request of one resource: quota, then token, then HTTP, then the envelope is
 * checked. What can pass is tried again with back-off, for ever, and each try waits for the quota: redirects
 * and 404 too, which gateways send while the API behind them is being replaced.
 *
 * The token is taken after the wait for the quota, so that it is fresh when it is sent; when there
 * is none just then, the start is given up and waited for again, or requests that all waited for
 * one login would reach the server later than the quota's log says. A refused token (401 or 403)
 * is renewed; but a list that refuses one new token after the other is not to be had with this key:
 * it errors with `API_STATUS`, and leaves the token to the other lists.
 */
export function listRequest(options: ListRequestOptions): ListRequest {
  const { url, tokens, scheduler = asyncScheduler } = options;
  const { dispatcher = getGlobalDispatcher(), readClock = newReadClock() } = options;
  const { refusals = { count: 0 }, read = parsedElement } = options;
  const { maxPageBytes = 64 * 2 ** 20, random, onAnswer, onRetry } = options;

  const send = (
    address: URL,
    token: Token,
    query: ListQuery,
    waitedMs: number,
  ): Observable<Answer> =>
    defer(() => {
      const begin = readClock.begin();
      const askedAt = scheduler.now();
      let answered = false; // from then on the read is settled by who deals with the page
      const headers = { authorization: `Bearer ${token.text}` };
      const maxBytes = maxPageBytes;
      const elapsed = () => scheduler.now() - askedAt;
      return exchange({ dispatcher, method: 'GET', url: address, headers, maxBytes }).pipe(
        tap({
          error: () => onAnswer?.({ status: undefined, elapsedMs: elapsed(), waitedMs }),
        }),
        switchMap((answer): Observable<Answer> => {
          const elapsedMs = elapsed();
          onAnswer?.({ status: answer.status, elapsedMs, waitedMs });
          if (answer.status === 401 || answer.status === 403) {
            if (refusals.count >= MOST_REFUSALS)
              throw statusError(url, answer, { offset: query.offset });
            if (token === tokens.current()) refusals.count += 1;
            tokens.refuse(token);
            throw new CellarstreamError(
              'TOKEN_REJECTED',
              `${where(url)} refused the token (${answer.status})`,
              { context: { status: answer.status } },
            );
          }
          refusals.count = 0;
          const serverTime = serverTimeAt(askedAt, elapsedMs, answer, token);
          return pageIn(answer, { url, query, read, scheduler }).pipe(
            map((page) => {
              answered = true;
              return { ...page, span: readClock.answered(begin), serverTime, elapsedMs };
            }),
          );
        }),
        finalize(() => {
          if (!answered) readClock.settle(begin);
        }),
      );
    });

  return (query, limit) => {
    const address = addressOf(url, query);
    const sent = (waitsSince: number) =>
      defer(() => {
        const token = tokens.current(); // after the wait: fresh as it is sent
        return token ? send(address, token, query, scheduler.now() - waitsSince) : of(undefined);
      });
    const attempt: Observable<Answer> = defer(() =>
      tokens.token$.pipe(
        take(1), // no start is spent while there is no token
        switchMap(() => during(limit, sent(scheduler.now()))),
        // Without one after all that start is over: not to be waited beside.
        switchMap((answer) => (answer ? of(answer) : attempt)),
      ),
    );
    return attempt.pipe(
      backoff({
        scheduler,
        canPass: isRetryableAtApi,
        ...(random && { random }),
        ...(onRetry && { onRetry }),
      }),
    );
  };
}

/** From the answer's own `Date`, less all that may have passed since; else from the login's. */
function serverTimeAt(
  askedAt: number,
  elapsedMs: number,
  { date }: HttpAnswer,
  token: Token,
): number | undefined {
  if (date !== undefined) return Math.floor(date - elapsedMs);
  if (token.serverTime === undefined) return undefined;
  return Math.floor(token.serverTime + askedAt - token.askedAt);
}

function addressOf(url: URL, query: ListQuery): URL {
  const address = new URL(url);
  for (const [name, value] of Object.entries(query) as [string, string | number][]) {
    address.searchParams.set(name, String(value));
  }
  return address;
}

/** How an API may put it that there is no record of a number; but a gateway may say so too. */
function isNotFound(answer: HttpAnswer, { orderNumber }: ListQuery): boolean {
  if (answer.status !== 404 || orderNumber === undefined) return false;
  return answer.text.trimStart().startsWith('{');
}

/** So many tokens in a row may be refused before it is the list's own affair. */
const MOST_REFUSALS = 3;

const NOTHING = {
  data: [],
  pagination: { total_records: 0, has_next_page: false },
  notFound: true,
} as const;

interface PageOptions {
  readonly url: URL;
  readonly query: ListQuery;
  /** What is at a place of the page. */
  readonly read: ElementReader;
  readonly scheduler: SchedulerLike;
}

/** What an answer brings. */
type Page = Pick<Answer, 'data' | 'pagination' | 'notFound'>;

/**
 * The page that an answer is; errors with `API_ANSWER` when it is none, and with what `read` throws.
 *
 * @throws CellarstreamError `API_STATUS`.
 */
function pageIn(
  answer: HttpAnswer,
  { url, query, read, scheduler }: PageOptions,
): Observable<Page> {
  if (isNotFound(answer, query)) return of(NOTHING);
  const context = { offset: query.offset };
  if (answer.status !== 200) throw statusError(url, answer, context);
  return stepwise(() => bodyIn(answer, read), scheduler).pipe(
    catchError((cause: unknown) => {
      // What is nested too deep is a RangeError. Anything else is no fault of the answer.
      if (!(cause instanceof SyntaxError || cause instanceof RangeError)) throw cause;
      // The parser's own message quotes the text, which may hold personal fields.
      const at = cause instanceof RangeError ? ' (RangeError)' : '';
      throw new CellarstreamError('API_ANSWER', `${where(url)} sent what is not JSON${at}`, {
        context,
      });
    }),
    map(({ data, pagination }) => {
      const page = (pagination ?? {}) as Partial<Record<keyof Pagination, JsonValue>>;
      const { total_records, has_next_page } = page;
      if (
        !Array.isArray(data) ||
        typeof total_records !== 'number' ||
        typeof has_next_page !== 'boolean'
      ) {
        throw new CellarstreamError(
          'API_ANSWER',
          `${where(url)} sent no page: data, pagination.total_records and has_next_page are needed`,
          { context },
        );
      }
      return { data, pagination: { total_records, has_next_page } };
    }),
  );
}

/** What is looked for in an answer. */
interface Body {
  readonly data?: JsonValue | readonly Sent[];
  readonly pagination?: JsonValue;
}

const bodyOf = (value: JsonValue): Body => (isJsonObject(value) ? value : {});

/** A page's elements one by one, those that are known left as they are; of another layout, whole. */
function* bodyIn(answer: HttpAnswer, read: ElementReader): Generator<void, Body> {
  const parts = yield* pageElements(answer.body, (at) => read(answer.body, at));
  if (!parts) return bodyOf(parseJson(answer.text));
  return { ...bodyOf(parseJson(parts.rest)), data: parts.elements };
}
