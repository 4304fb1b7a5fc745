import { asyncScheduler, defer, finalize, map, of, switchMap, take, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { backoff } from '../flow/backoff.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';
import type { ListQuery } from './list-query.ts';
import type { BodyPool } from './body.ts';
import { exchange, isSuccess, statusError, where } from './http.ts';
import type { HttpAnswer, RequestHooks } from './http.ts';
import { logicalClock as newLogicalClock } from './logical-clock.ts';
import type { LogicalClock, Span } from './logical-clock.ts';
import type { Token } from './login.ts';
import type { TokenSource } from './token.ts';

/** The body of an answer, before anybody has looked into it. */
export interface RawPage extends Pick<HttpAnswer, 'body' | 'text'> {
  /** The answer was a 404 that is no page of HTML, to a request for one record: who said it? */
  readonly isNotFound: boolean;
  /** The server said that there is nothing: 204 or 205, which have no body. */
  readonly isEmpty?: boolean;
  /** When the request was under way, in the order of things; see {@link LogicalClock}. */
  readonly span: Span;
  /** The server's clock at about the time of asking, never later: ms; undefined if it never told. */
  readonly serverTime: number | undefined;
  /** How long the answer took, from the request to its last byte, ms. */
  readonly elapsedMs: number;
}

/** Asks for one page; `limit` is the lane of the quota to wait in. Emits once and completes. */
export type PageRequest = (query: ListQuery, limit: Limit) => Observable<RawPage>;

/** How pages are asked for: where, with which token, and what is told of it. */
export interface PageRequestOptions {
  /** The list's address, such as `https://api.example/v1/orders`. */
  readonly url: URL;
  /** Connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  readonly tokens: TokenSource;
  /** How the list has taken to tokens; kept by whoever makes its request again. Default a new one. */
  readonly refusals?: Refusals;
  /** Orders the requests that may meet the same records: one clock a resource. Default its own. */
  readonly logicalClock?: LogicalClock;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1), for the jitter. Default Math.random. */
  readonly random?: () => number;
  /** Largest page accepted, in bytes after decompression. Default 64 MiB. */
  readonly maxPageBytes?: number;
  /** Where the memory of pages is taken from: whoever deals with a page gives it back. Default new memory. */
  readonly bodies?: BodyPool | undefined;
  /** Told of requests and of tries. Default nobody is. */
  readonly hooks?: RequestHooks;
}

/** Refusals (401, 403) of a list in a row, each of another token. */
export interface Refusals {
  count: number;
}

/**
 * Makes the list request of one resource: quota, then token, then HTTP. What can pass is tried again with back-off,
 * for ever, and each try waits for the quota: redirects and 404 too, which gateways send while the API behind them is
 * being replaced. Its place in the quota is given back with the answer: what that holds is for later stages.
 *
 * The token is taken after the wait for the quota, so that it is fresh when it is sent. When there is none just then, the request
 * gives its start up, and waits for the quota anew once there is a token. If requests kept their starts while they all waited for
 * one login, they would reach the server later than the quota's log says. A refused token (401 or 403)
 * is renewed; but a list that refuses one new token after the other is not to be had with this key:
 * it errors with `API_STATUS`, and leaves the token to the other lists.
 *
 * A 429 and all other refusals count in the quota as well, as the server may count them: the start counts until a window has passed since
 * its end, and for `lateMs` more (a second, in the service), as that of a request that was given up does (`quota/start-log.ts`).
 */
export function pageRequest(options: PageRequestOptions): PageRequest {
  const { url, tokens, scheduler = asyncScheduler } = options;
  const { dispatcher = getGlobalDispatcher(), logicalClock = newLogicalClock() } = options;
  const {
    refusals = { count: 0 },
    maxPageBytes = 64 * 2 ** 20,
    random,
    hooks: { onAnswer, onRetry } = {},
    bodies,
  } = options;

  const send = (token: Token, query: ListQuery, waitedMs: number): Observable<RawPage> =>
    defer(() => {
      const begin = logicalClock.begin();
      const askedAt = scheduler.now();
      let isAnswered = false; // from then on the read is settled by who deals with the page
      const request = {
        dispatcher,
        method: 'GET',
        url: addressOf(url, query),
        headers: { authorization: `Bearer ${token.text}` },
        maxBytes: maxPageBytes,
        bodies,
      } as const;
      const elapsed = () => scheduler.now() - askedAt;
      return exchange(request).pipe(
        tap({
          error: () => onAnswer?.({ status: undefined, elapsedMs: elapsed(), waitedMs }),
        }),
        map((answer): RawPage => {
          const elapsedMs = elapsed();
          onAnswer?.({ status: answer.status, elapsedMs, waitedMs });
          expectAccepted(answer, token, query);
          const isNone = isNotFound(answer, query);
          if (!isSuccess(answer.status) && !isNone)
            throw statusError(url, answer, { offset: query.offset });
          isAnswered = true;
          return {
            body: answer.body,
            get text() {
              return answer.text;
            },
            isNotFound: isNone,
            isEmpty: NO_CONTENT.has(answer.status),
            span: logicalClock.answered(begin),
            serverTime: serverTimeAt(askedAt, elapsedMs, answer, token),
            elapsedMs,
          };
        }),
        finalize(() => {
          if (!isAnswered) logicalClock.settle(begin);
        }),
      );
    });
  const expectAccepted = (answer: HttpAnswer, token: Token, { offset }: ListQuery): void => {
    if (answer.status !== 401 && answer.status !== 403) {
      refusals.count = 0;
      return;
    }
    if (refusals.count >= MAX_REFUSALS) throw statusError(url, answer, { offset });
    if (token === tokens.current()) refusals.count += 1;
    tokens.refuse(token);
    throw new CellarstreamError(
      'TOKEN_REJECTED',
      `${where(url)} refused the token (${answer.status})`,
      { context: { status: answer.status } },
    );
  };

  return (query, limit) => {
    const sent = (waitsSince: number) =>
      defer(() => {
        const token = tokens.current(); // after the wait: fresh as it is sent
        if (!token) return of(undefined);
        return send(token, query, scheduler.now() - waitsSince);
      });
    const attempt: Observable<RawPage> = defer(() =>
      tokens.token$.pipe(
        take(1), // no start is spent while there is no token
        switchMap(() => during(limit, sent(scheduler.now()))),
        // Without one after all that start is over: not to be waited beside.
        switchMap((page) => (page ? of(page) : attempt)),
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

const NO_CONTENT: ReadonlySet<number> = new Set([204, 205]);

/** How an API may put it that there is no record of a number; but a gateway may say so too. */
function isNotFound(answer: HttpAnswer, { orderNumber }: ListQuery): boolean {
  if (answer.status !== 404 || orderNumber === undefined) return false;
  return answer.text.trimStart().startsWith('{');
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

/** So many tokens in a row may be refused before it is the list's own affair. */
const MAX_REFUSALS = 3;
