import { asyncScheduler, defer, finalize, map, of, switchMap, take, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { parsedElement } from '../../schemas/json/page-elements.ts';
import type { Answer, ListQuery, ListRequest } from './answer.ts';
import { backoff } from '../flow/backoff.ts';
import type { Retry } from '../flow/backoff.ts';
import { isBroken } from './broken-answer.ts';
import type { BrokenAnswer } from './broken-answer.ts';
import { brokenPages } from './broken-pages.ts';
import { exchange, statusError, where } from './http.ts';
import type { AnswerSeen, HttpAnswer } from './http.ts';
import { pageIn } from './page-in.ts';
import type { ElementReader } from '../records/sent-record.ts';
import { logicalClock as newReadClock } from './logical-clock.ts';
import type { LogicalClock } from './logical-clock.ts';
import type { Token } from './login.ts';
import type { TokenSource } from './token.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';
import { unreadableTexts } from './unreadable-texts.ts';
import type { UnreadableTexts } from './unreadable-texts.ts';

export type { Answer, ListQuery, ListRequest, Pagination } from './answer.ts';

/** What {@link listRequest} needs. */
export interface ListRequestOptions {
  /** The list's address, such as `https://api.example/v1/orders`. */
  readonly url: URL;
  /** Connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  readonly tokens: TokenSource;
  /** How the list has taken to tokens; kept by whoever makes its request again. Default a new one. */
  readonly refusals?: Refusals;
  /** What of the list is known to be no JSON; kept by whoever makes its request again. Default nothing. */
  readonly texts?: UnreadableTexts;
  /** Orders the requests that may meet the same records: one clock a resource. Default its own. */
  readonly logicalClock?: LogicalClock;
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
 * and 404 too, which gateways send while the API behind them is being replaced. A record that is no JSON
 * comes as an `UnreadableRecord` when that has not passed after a few tries; around one that keeps its page from being read, see
 * `broken-pages.ts`.
 *
 * The token is taken after the wait for the quota, so that it is fresh when it is sent; when there
 * is none just then, the start is given up and waited for again, or requests that all waited for
 * one login would reach the server later than the quota's log says. A refused token (401 or 403)
 * is renewed; but a list that refuses one new token after the other is not to be had with this key:
 * it errors with `API_STATUS`, and leaves the token to the other lists.
 */
export function listRequest(options: ListRequestOptions): ListRequest {
  const { url, tokens, scheduler = asyncScheduler } = options;
  const { dispatcher = getGlobalDispatcher(), logicalClock = newReadClock() } = options;
  const { refusals = { count: 0 }, read = parsedElement, texts = unreadableTexts() } = options;
  const { maxPageBytes = 64 * 2 ** 20, random, onAnswer, onRetry } = options;

  const retrying = {
    scheduler,
    canPass: isRetryableAtApi,
    ...(random && { random }),
    ...(onRetry && { onRetry }),
  };

  const send = (
    address: URL,
    token: Token,
    query: ListQuery,
    waitedMs: number,
    isLastTry: () => boolean,
  ): Observable<Answer | BrokenAnswer> =>
    defer(() => {
      const begin = logicalClock.begin();
      const askedAt = scheduler.now();
      let answered = false; // from then on the read is settled by who deals with the page
      const headers = { authorization: `Bearer ${token.text}` };
      const maxBytes = maxPageBytes;
      const elapsed = () => scheduler.now() - askedAt;
      return exchange({ dispatcher, method: 'GET', url: address, headers, maxBytes }).pipe(
        tap({
          error: () => onAnswer?.({ status: undefined, elapsedMs: elapsed(), waitedMs }),
        }),
        switchMap((answer): Observable<Answer | BrokenAnswer> => {
          const elapsedMs = elapsed();
          onAnswer?.({ status: answer.status, elapsedMs, waitedMs });
          if (answer.status === 401 || answer.status === 403) {
            if (refusals.count >= MAX_REFUSALS)
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
          return pageIn(answer, { url, query, read, texts, isLastTry, scheduler }).pipe(
            map((page) => {
              answered = true;
              return { ...page, span: logicalClock.answered(begin), serverTime, elapsedMs };
            }),
          );
        }),
        finalize(() => {
          if (!answered) logicalClock.settle(begin);
        }),
      );
    });

  /** What is no JSON is tried again so often before it is taken for what the API has to say. */
  const asking = (query: ListQuery, limit: Limit, tries: number) => {
    const address = addressOf(url, query);
    let left = tries;
    const isLastTry = () => --left <= 0;
    const sent = (waitsSince: number) =>
      defer(() => {
        const token = tokens.current(); // after the wait: fresh as it is sent
        if (!token) return of(undefined);
        return send(address, token, query, scheduler.now() - waitsSince, isLastTry);
      });
    const attempt: Observable<Answer | BrokenAnswer> = defer(() =>
      tokens.token$.pipe(
        take(1), // no start is spent while there is no token
        switchMap(() => during(limit, sent(scheduler.now()))),
        // Without one after all that start is over: not to be waited beside.
        switchMap((answer) => (answer ? of(answer) : attempt)),
      ),
    );
    return attempt.pipe(backoff(retrying));
  };

  return (query, limit) => {
    const around = brokenPages({
      url,
      ask: (part) => asking(part, limit, 1),
      texts,
      settle: ({ begin }) => logicalClock.settle(begin),
    });
    return defer(() => asking(query, limit, TRIES)).pipe(
      switchMap((answer) => (isBroken(answer) ? around(query, answer) : of(answer))),
      backoff({ ...retrying, firstMs: AROUND_AGAIN_MS }),
    );
  };
}

/** What fails by the way is over by then: these take some two seconds. */
const TRIES = 5;
/** Ceiling of the first pause when nothing around a broken record leads on, which has taken a dozen requests. */
const AROUND_AGAIN_MS = 4_000;

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
