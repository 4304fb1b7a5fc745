import { asyncScheduler, defer, finalize, map, of, switchMap, take, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { backoff, RETRY_AFTER } from '../flow/backoff.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';
import { answerAges } from './answer-age.ts';
import type { AnswerAge, AnswerAges, DatedAnswer } from './answer-age.ts';
import type { BodyPool } from './body.ts';
import { blockedError, exchange, isJson, isSuccess, statusError, where } from './http.ts';
import type { HttpAnswer, RequestHooks } from './http.ts';
import { logicalClock as newLogicalClock } from './logical-clock.ts';
import type { LogicalClock, Span } from './logical-clock.ts';
import type { Token } from './login.ts';
import type { RequestTimes, TokenOutcome, TokenUse } from './token-life.ts';
import type { TokenSource } from './token.ts';

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

/** An answered page whose body is not decoded yet. */
export interface RawPage extends Pick<HttpAnswer, 'body' | 'text'> {
  /** Whether the answer is a 404 without HTML to a query for one record, which means that the record does not exist. */
  readonly isNotFound: boolean;
  /** Whether the answer is a 204 or 205, which have no body: an empty page. Default false. */
  readonly isEmpty?: boolean;
  /** Begin and end of the request on the list's {@link LogicalClock}. */
  readonly span: Span;
  /** Lower bound of the server's time for which the answer is valid, in epoch ms; undefined if the server never sends its time. */
  readonly serverTime: number | undefined;
  /** Time from sending the request to the last byte of the answer, in ms. */
  readonly elapsedMs: number;
  readonly age: AnswerAge;
  /** Reports to the token whether the body was a page: nothing else proves that the server accepts the token. */
  readonly reportPage: (isPage: boolean) => void;
}

/** When to give up a page that may itself be the cause of its failures. */
export interface PagePatience {
  /** Called with each retryable error. True ends the retries with that error. */
  readonly isGivenUp: (error: unknown) => boolean;
  /** Whether the page may be the cause of a refusal, such as a 400, and the caller looks into that: it then says nothing about the token. */
  readonly isOfPage: (error: unknown) => boolean;
}

/**
 * Requests one page. Emits once and completes.
 *
 * @param limit Lane of the quota in which the request waits.
 * @param patience Default: retries never end.
 */
export type PageRequest = (
  query: ListQuery,
  limit: Limit,
  patience?: PagePatience,
) => Observable<RawPage>;

const ENDLESS: PagePatience = { isGivenUp: () => false, isOfPage: () => false };

/** Options of a page request. */
export interface PageRequestOptions {
  /** The list's address, such as `https://api.example/v1/orders`. */
  readonly url: URL;
  /** Connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  readonly tokens: TokenSource;
  /** Orders the requests that may return the same records; share one clock per resource. Default a new one. */
  readonly logicalClock?: LogicalClock;
  /** Estimates the age of answers; share one for all lists of an API. Default a new one. */
  readonly ages?: AnswerAges;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1), for the jitter. Default Math.random. */
  readonly random?: () => number;
  /** Largest page accepted, in bytes after decompression. Default 64 MiB. */
  readonly maxPageBytes?: number;
  /** Pool for the memory of page bodies; the consumer of a page gives it back. Default: memory is allocated for each page. */
  readonly bodies?: BodyPool | undefined;
  /** Called for answers and retries. Default none. */
  readonly hooks?: RequestHooks;
}

/**
 * Makes the list request of one resource, which waits for the quota, takes the token and sends the request. Retryable errors are retried
 * with back-off without an end, and each retry waits for the quota. Redirects and 404 are retried as well: gateways send them while the API
 * behind them is replaced. The request's place in the quota is released with the answer, before the page is decoded.
 *
 * The token is taken after the wait for the quota, so that it is fresh when it is sent. If there is none at that moment, the request gives
 * up its place, and waits for the quota again once there is a token. If requests kept their places while they waited for a login, they
 * would reach the server later than the quota's log says.
 *
 * Every outcome is reported to the token (see `token-life.ts`), which decides when a refused token (401 or 403) is tried again and when it
 * is renewed. A list that refuses one new token after the other can't be read with this key: it errors with `API_STATUS`, and leaves the
 * token to the other lists. Other statuses that can't pass are final too, but only after they have been seen with a fresh token.
 *
 * A 429 and all other refusals count in the quota as well, as the server may count them: the start counts until a window has passed since
 * its end, and for `lateMs` more (a second, in the service), as that of a request that was given up does (`quota/start-log.ts`).
 */
export function pageRequest(options: PageRequestOptions): PageRequest {
  const { url, tokens, scheduler = asyncScheduler } = options;
  const { dispatcher = getGlobalDispatcher(), logicalClock = newLogicalClock() } = options;
  const { ages = answerAges() } = options;
  const {
    maxPageBytes = 64 * 2 ** 20,
    random,
    hooks: { onAnswer, onRetry } = {},
    bodies,
  } = options;

  /** The error of an answer that is neither a page nor "no such record"; what it says about the token is reported. */
  const failure = (
    answer: HttpAnswer,
    use: TokenUse,
    query: ListQuery,
    isOfPage: PagePatience['isOfPage'],
  ): Error => {
    const { status } = answer;
    const { offset } = query;
    const isBlocked = status === 403 && !isJson(answer);
    const error = (isBlocked ? blockedError : statusError)(url, answer, { offset });
    const outcome = outcomeOf(answer, error, query);
    if (!outcome || (outcome === 'failed-for-good' && isOfPage(error))) return error;
    const { isFinal, pauseMs } = tokens.report(use, outcome);
    const isRefusal = outcome === 'refused' || outcome === 'forbidden';
    if (isFinal && isRefusal) return forbiddenError(url, status, query);
    if (isFinal || pauseMs === undefined) return error;
    const text = isRefusal
      ? `refused the token (${status})`
      : `answered ${status}; the token may be the cause, so the request is repeated`;
    return new CellarstreamError(
      isRefusal ? 'TOKEN_REJECTED' : 'API_STATUS',
      `${where(url)} ${text}`,
      { context: { offset, status, canPass: true, [RETRY_AFTER]: pauseMs } },
    );
  };
  const send = (
    token: Token,
    query: ListQuery,
    waitedMs: number,
    last: FailedTry,
    isOfPage: PagePatience['isOfPage'],
  ): Observable<RawPage> =>
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
      const list = kindOf(url, query);
      const isSelective = list !== url.href;
      const use = { token, list, isSelective, sentAt: askedAt };
      const elapsed = () => scheduler.now() - askedAt;
      return exchange(request).pipe(
        tap({
          error: () => onAnswer?.({ status: undefined, elapsedMs: elapsed(), waitedMs }),
        }),
        map((answer): RawPage => {
          const elapsedMs = elapsed();
          onAnswer?.({ status: answer.status, elapsedMs, waitedMs });
          const isNone = isNotFound(answer, query);
          if (!isSuccess(answer.status) && !isNone) {
            const { status } = answer;
            const isRepeated = last.status === status && last.token === token;
            const lastTry = isRepeated ? last.times : undefined;
            const times = { sentAt: askedAt, answeredAt: scheduler.now() };
            Object.assign(last, { status, token, times });
            throw failure(answer, { ...use, lastTry }, query, isOfPage);
          }
          const { date, ageMs } = answer;
          // Windows of dates are never requested twice.
          const address = query.modifiedFromDate === undefined ? request.url.href : undefined;
          const dated = { askedAt, elapsedMs, date, ageMs, address };
          const age = ages.of(dated);
          isAnswered = true;
          return {
            body: answer.body,
            get text() {
              return answer.text;
            },
            isNotFound: isNone,
            isEmpty: NO_CONTENT.has(answer.status),
            span: logicalClock.answered(begin),
            serverTime: serverTimeAt(dated, age, token),
            elapsedMs,
            age,
            reportPage: (isPage) => {
              if (!isNone) tokens.report(use, isPage ? 'worked' : 'failed');
            },
          };
        }),
        finalize(() => {
          if (!isAnswered) logicalClock.settle(begin);
        }),
      );
    });

  return (query, limit, { isGivenUp, isOfPage } = ENDLESS) => {
    const sent = (waitsSince: number, last: FailedTry) =>
      defer(() => {
        const token = tokens.current(); // after the wait: fresh as it is sent
        if (!token) return of(undefined);
        return send(token, query, scheduler.now() - waitsSince, last, isOfPage);
      });
    const attempt = (last: FailedTry): Observable<RawPage> =>
      defer(() =>
        tokens.token$.pipe(
          take(1), // no start is spent while there is no token
          switchMap(() => during(limit, sent(scheduler.now(), last))),
          // Without one after all that start is over: not to be waited beside.
          switchMap((page) => (page ? of(page) : attempt(last))),
        ),
      );
    return defer(() =>
      attempt({}).pipe(
        backoff({
          scheduler,
          canPass: (error) => isRetryableAtApi(error) && !isGivenUp(error),
          ...(random && { random }),
          ...(onRetry && { onRetry }),
        }),
      ),
    );
  };
}

/** The newest failed try of a query. */
interface FailedTry {
  status?: number;
  token?: Token;
  times?: RequestTimes;
}

/** Conclusion about the token from an answer without a page; undefined where the answer allows none. */
function outcomeOf(answer: HttpAnswer, error: Error, query: ListQuery): TokenOutcome | undefined {
  const { status } = answer;
  if (status === 429) return undefined;
  if (status === 401) return 'refused';
  if (isRetryableAtApi(error)) return 'failed'; // a firewall's 403 too
  if (status === 403) return 'forbidden';
  return namesParameter(answer, query) ? undefined : 'failed-for-good';
}

function forbiddenError(url: URL, status: number, query: ListQuery): CellarstreamError {
  const { offset, modifiedFromDate } = query;
  const advice =
    modifiedFromDate === undefined
      ? 'the API key may have no right to read this list. Give it the right, or leave the list out of RESOURCES'
      : 'the API key may have no right to read this list by modification dates. Give it the right';
  return new CellarstreamError(
    'API_STATUS',
    `${where(url)} answered ${status} to fresh tokens too: ${advice}`,
    { context: { status, offset } },
  );
}

/** The list, and by which parameters its records are chosen: a server may refuse dates, or numbers, to a token that may read the list. */
function kindOf({ href }: URL, { modifiedFromDate, orderNumber }: ListQuery): string {
  if (orderNumber !== undefined) return `${href} by number`;
  return modifiedFromDate === undefined ? href : `${href} by date`;
}

/** Whether a refusal names a parameter of its query, as in "offset must be a multiple of pageSize": the token is not to blame. */
function namesParameter({ text }: HttpAnswer, query: ListQuery): boolean {
  const said = text.toLowerCase();
  return Object.keys(query).some((name) => said.includes(name.toLowerCase()));
}
const NO_CONTENT: ReadonlySet<number> = new Set([204, 205]);

/** How an API may put it that there is no record of a number; but a gateway may say so too. */
function isNotFound(answer: HttpAnswer, { orderNumber }: ListQuery): boolean {
  if (answer.status !== 404 || orderNumber === undefined) return false;
  return answer.text.trimStart().startsWith('{');
}

/** From the answer's own `Date`, less all that may have passed since, and less what the `Age` says beyond it; else from the login's. */
function serverTimeAt(
  { askedAt, elapsedMs, date }: DatedAnswer,
  { asOf, dateLagMs }: AnswerAge & { readonly dateLagMs: number },
  token: Token,
): number | undefined {
  if (date !== undefined) return Math.floor(date - elapsedMs - (askedAt - dateLagMs - asOf));
  if (token.serverTime === undefined) return undefined;
  return Math.floor(token.serverTime + asOf - token.askedAt);
}

function addressOf(url: URL, query: ListQuery): URL {
  const address = new URL(url);
  for (const [name, value] of Object.entries(query) as [string, string | number][]) {
    address.searchParams.set(name, String(value));
  }
  return address;
}
