import { asyncScheduler, defer, of, switchMap, take } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { objectIn } from '../../core/http-text.ts';
import { backoff, RETRY_AFTER } from '../flow/backoff.ts';
import { inSteps, waitFor } from '../flow/steps.ts';
import type { Steps } from '../flow/steps.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';
import { AnswerRules } from './answer-rules.ts';
import type { AnswerOptions } from './answer-rules.ts';
import { AnswerAges } from './response-age.ts';
import type { AnswerAge, DatedAnswer } from './response-age.ts';
import type { BodyPool } from './body.ts';
import { bearer } from './authorization.ts';
import { blockedError, exchange, isJson, isSuccess, statusError, loggableAddress } from './http.ts';
import type { DescribedStatus, HttpResponse, RequestHooks } from './http.ts';
import { LogicalClock } from './logical-clock.ts';
import type { Span } from './logical-clock.ts';
import type { Token } from './login.ts';
import type { ListQuery, PlannedRequest, RequestPlan, RequestPlanOptions } from './request-plan.ts';
import type { RequestTimes, TokenOutcome, TokenUse } from './token-life.ts';
import type { TokenSource } from './token.ts';

export type { ListQuery } from './request-plan.ts';

/** The response to a list request, not decoded yet. */
export interface RawPage extends Pick<HttpResponse, 'body' | 'text' | 'headers'> {
  /** Whether a single record was requested and the response says that it does not exist. */
  readonly isNotFound: boolean;
  /** Whether the response has no body (204, 205) and so is an empty page. Default false. */
  readonly isEmpty?: boolean;
  readonly span: Span;
  /** Lower bound of the server's time when it read the records, in epoch ms. Undefined if the server's time is unknown. */
  readonly serverTime: number | undefined;
  readonly elapsedMs: number;
  readonly age: AnswerAge;
  /**
   * Reports to the token source whether the body was a page: only a decoded page proves that the server accepts the token. Call it after
   * decoding.
   */
  readonly reportPage: (isPage: boolean) => void;
}

/** Decides when to give up a page whose content or size may be the cause of failures. */
export interface PagePatience {
  /**
   * Whether the page is given up after an error, and so not retried. Called with each retryable error of the request, and with the error
   * for a successful response whose body is not a page.
   */
  readonly isGivenUp: (error: unknown) => boolean;
  /**
   * Whether the page, and not the token, may be the cause of an error. If true, the error is not reported to the token source. Called for
   * non-retryable statuses other than a refusal of the token (401, 403).
   */
  readonly isOfPage: (error: unknown) => boolean;
}

/** Requests one page once the quota (`limit`) allows it; emits the response and completes. */
export type PageRequest = (
  query: ListQuery,
  limit: Limit,
  patience: PagePatience,
) => Observable<RawPage>;

/** How the pages of one list are requested: description, connections, token, limits and hooks. */
export interface PageRequestOptions extends RequestPlanOptions {
  /** undici dispatcher, which provides connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  readonly tokens: TokenSource;
  /**
   * Logical clock that shows which reads of a list overlapped. All requests for the list must share it. Default a new one, on which
   * `listRequest` closes each read with its response.
   */
  readonly logicalClock?: LogicalClock;
  /** Estimator of the ages of responses. All lists of an API should share it. Default a new one. */
  readonly ages?: AnswerAges;
  /** Provides the clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Returns a random number in [0, 1), for the jitter of retry pauses. Default Math.random. */
  readonly random?: () => number;
  /** Maximum size of a page's response body, in bytes after decompression. Default 64 MiB. */
  readonly maxPageBytes?: number;
  /** Pool of buffers for page bodies. The consumer of a page gives its buffer back. Default: no pool; each page gets a new buffer. */
  readonly bodies?: BodyPool | undefined;
  /** Called for each finished request and for each retry. Default none. */
  readonly hooks?: RequestHooks;
}

/**
 * Creates the function that requests pages of one list. A request waits for a token, then for the quota, and is sent. Retryable errors,
 * redirects and 404 are retried with back-off for as long as the caller's patience allows. Each retry waits for the quota.
 *
 * The token:
 *
 * - The request takes the token that is current after the wait for the quota. If there is none any more, both waits begin again.
 * - Every outcome that shows something about the token is reported to the token source. The token source decides when the token is renewed,
 *   and when a request is retried after a refusal of its token (such as 401 or 403).
 * - If the list refuses one new token after the other, the request errors with `API_STATUS`. Other lists continue with the token.
 * - After any other non-retryable status, the request is usually retried with a fresh token before it fails.
 *
 * How requests count against the quota:
 *
 * - A request is in flight until its response is complete. The page is decoded after that.
 * - A refused request (429 or any other refusal) counts for one window, which begins `lateMs` after the response arrived. Statuses that the
 *   description calls `free` do not count.
 * - A request that was given up counts for one window, which begins `lateMs` after it was given up (`quota/token-bucket.ts`).
 */
export function pageRequest(
  requests: RequestPlan,
  options: Omit<PageRequestOptions, keyof RequestPlanOptions> & AnswerOptions,
): PageRequest {
  const { tokens, dispatcher = getGlobalDispatcher(), scheduler = asyncScheduler } = options;
  const { logicalClock = new LogicalClock(), ages = new AnswerAges() } = options;
  const { rules = new AnswerRules(), maxPageBytes = 64 * 2 ** 20, bodies, onSend } = options;
  const { random, hooks: { onAnswer, onRetry } = {} } = options;
  const { list, url } = requests;
  const { authorize = bearer } = tokens;

  /** Reports to the token source what a response that is not a page shows about the token. Returns the error to throw for the response. */
  const failure = (
    answer: HttpResponse,
    use: TokenUse,
    sent: PlannedRequest,
    { query, isOfPage }: PendingQuery,
  ): Error => {
    const { status } = answer;
    const { offset } = query;
    const described = rules.of(answer, scheduler.now());
    const { meaning } = described;
    const error =
      status === 403 && meaning === undefined && !isJson(answer)
        ? blockedError(url, answer, { offset })
        : statusError(url, answer, { offset }, undefined, described);
    const outcome = outcomeOf(answer, error, sent, meaning);
    if (!outcome || (outcome === 'failed-for-good' && isOfPage(error))) return error;
    const { isFinal, pauseMs, errorOf } = tokens.report(use, outcome);
    if (errorOf) return errorOf(loggableAddress(url), status);
    const isRefusal = outcome === 'refused' || outcome === 'forbidden';
    if (isFinal && isRefusal) return forbiddenError(url, status, query);
    if (isFinal || pauseMs === undefined) return error;
    const code = isRefusal ? 'TOKEN_REJECTED' : 'API_STATUS';
    const text = isRefusal
      ? `refused the token (${status}): the request is repeated`
      : `answered ${status}; the token may be the cause, so the request is repeated`;
    const context = { offset, status, canPass: true, [RETRY_AFTER]: pauseMs };
    return new CellarstreamError(code, `${loggableAddress(url)} ${text}`, { context });
  };
  function* send(token: Token, waitedMs: number, pending: PendingQuery): Steps<RawPage> {
    const { query, lastFailure } = pending;
    const askedAt = scheduler.now();
    const planned = requests.requestOf(query);
    if (planned.url.origin !== url.origin) {
      throw new RangeError(
        `a request to ${planned.url.origin} was not sent, because the credentials are for ${url.origin} only. This is a bug of Cellarstream: report it`,
      );
    }
    const request = {
      ...authorize(planned, token),
      // Addresses in messages contain no key of a record and no credentials.
      ...{ shownUrl: url, dispatcher, maxBytes: maxPageBytes, bodies },
    };
    const kind = queryKindOf(query);
    const use = { token, list: list.name + kind, isSelective: kind !== '', sentAt: askedAt };
    const elapsed = () => scheduler.now() - askedAt;
    const onEnd = onSend?.();
    const begin = logicalClock.begin(); // after everything that may throw: a read that is not settled would stay open
    let answer: HttpResponse | undefined;
    let isAnswered = false; // once true, the consumer of the page settles the read
    try {
      try {
        answer = yield* waitFor(exchange(request));
      } catch (error) {
        onAnswer?.({ status: undefined, elapsedMs: elapsed(), waitedMs });
        throw error;
      }
      const elapsedMs = elapsed();
      const { status, date, ageMs, body, headers } = answer;
      const isNone = query.key !== undefined && isGone(answer, list.one?.gone ?? []);
      onAnswer?.({ status, elapsedMs, waitedMs, ...(isNone && { isGone: true }) });
      const isPage = isSuccess(status) && rules.meaningOf(status) === undefined;
      if (!isPage && !isNone) {
        const isRepeated = lastFailure?.status === status && lastFailure.token === token;
        const lastTry = isRepeated ? lastFailure.times : undefined;
        const times = { sentAt: askedAt, answeredAt: scheduler.now() };
        pending.lastFailure = { status, token, times };
        throw failure(answer, { ...use, lastTry }, planned, pending);
      }
      // Not remembered for date windows, which are never requested twice, and for bodies, which addresses do not contain.
      const isComparable = query.from === undefined && planned.body === undefined;
      const address = isComparable ? planned.url.href : undefined;
      const dated = { askedAt, elapsedMs, date, ageMs, address };
      const age = ages.of(dated);
      isAnswered = true;
      const received = answer;
      return {
        body,
        get text() {
          return received.text;
        },
        headers,
        isNotFound: isNone,
        isEmpty: status === 204 || status === 205,
        span: logicalClock.answered(begin),
        serverTime: serverTimeAt(dated, age, token),
        elapsedMs,
        age,
        reportPage: (isPage) => {
          if (!isNone) tokens.report(use, isPage ? 'worked' : 'failed');
        },
      };
    } finally {
      onEnd?.(answer);
      if (!isAnswered) logicalClock.settle(begin);
    }
  }

  return (query, limit, { isGivenUp, isOfPage }) =>
    defer(() => {
      const pending: PendingQuery = { query, isOfPage };
      const sent = (waitsSince: number) =>
        defer(() => {
          const token = tokens.current(); // after the wait for the quota, so that it is fresh
          if (!token) return of(undefined);
          const waitedMs = scheduler.now() - waitsSince;
          return inSteps(() => send(token, waitedMs, pending));
        });
      const attempt: Observable<RawPage> = defer(() =>
        tokens.token$.pipe(
          take(1), // no start is used while there is no token: the request would reach the server later than the quota assumes
          switchMap(() => during(limit, sent(scheduler.now()))),
          // The token expired during the wait for the quota: this start ends, and the next attempt waits for a token first.
          switchMap((page) => (page ? of(page) : attempt)),
        ),
      );
      return attempt.pipe(
        backoff({
          ...{ scheduler, random, onRetry },
          canPass: (error) => isRetryableAtApi(error) && !isGivenUp(error),
        }),
      );
    });
}

/** A query, which may take several requests, and its newest request that failed with a status. */
interface PendingQuery extends Pick<PagePatience, 'isOfPage'> {
  readonly query: ListQuery;
  lastFailure?: { readonly status: number; readonly token: Token; readonly times: RequestTimes };
}

/**
 * Returns what a response that is not a page shows about the token that was sent; undefined if it shows nothing about the token.
 *
 * @param error The error for this response.
 * @param meaning Meaning of the response's status according to the API's description; undefined if the description does not say.
 */
function outcomeOf(
  answer: HttpResponse,
  error: Error,
  sent: PlannedRequest,
  meaning: DescribedStatus['meaning'],
): TokenOutcome | undefined {
  const { status } = answer;
  if (meaning === 'quota' || meaning === 'final') return undefined; // `final`: not repeated with a fresh token either
  if (meaning === 'token' || (meaning === undefined && status === 401)) return 'refused';
  if (isRetryableAtApi(error)) return 'failed'; // a firewall's 403 too
  if (status === 403) return 'forbidden';
  return namesParameter(answer, sent) ? undefined : 'failed-for-good';
}

function forbiddenError(url: URL, status: number, query: ListQuery): CellarstreamError {
  const { offset, from } = query;
  const advice =
    from === undefined
      ? 'the API key may have no right to read this list. Give it the right, or leave the list out of RESOURCES'
      : 'the API key may have no right to read this list by modification dates. Give it the right';
  return new CellarstreamError(
    'API_STATUS',
    `${loggableAddress(url)} answered ${status} to fresh tokens too: ${advice}`,
    { context: { status, offset } },
  );
}

/**
 * Returns a suffix for the list's name that tells apart kinds of queries: ` by key`, ` total`, ` by date`, or an empty text for all
 * records. A server may accept an access token for one kind and refuse it for another.
 */
function queryKindOf({ from, key, isTotal }: ListQuery): string {
  if (key !== undefined) return ' by key';
  if (isTotal) return ' total';
  return from === undefined ? '' : ' by date';
}

/**
 * Whether the body of a refusal names a parameter of the request, as in "offset must be a multiple of pageSize": then the token is not the
 * cause. Only whole words count: a parameter `to` is not named by "invalid token".
 */
function namesParameter({ text }: HttpResponse, { url, body = '{}' }: PlannedRequest): boolean {
  const names = [...url.searchParams.keys(), ...Object.keys(objectIn(body) ?? {})];
  return names.some((name) => {
    const literal = name.replaceAll(
      /[^\p{L}\p{N}_]/gu,
      (sign) => `\\u{${sign.codePointAt(0)!.toString(16)}}`,
    );
    return new RegExp(`(?<![\\p{L}\\p{N}_])${literal}(?![\\p{L}\\p{N}_])`, 'iu').test(text);
  });
}

/**
 * Whether the response to a request for a single record says that there is no such record: it has one of the statuses `gone`. A 404 counts
 * only with a JSON object, as any other 404 may come from a gateway.
 */
function isGone({ status, text }: HttpResponse, gone: readonly number[]): boolean {
  return gone.includes(status) && (status !== 404 || text.trimStart().startsWith('{'));
}

/**
 * Returns a lower bound of the server's time when it read the records of a response, in epoch ms: the `Date` header minus the duration of
 * the request and the age of the response. Without that header, it is computed from the server's time at the login; undefined if that is
 * unknown too.
 */
function serverTimeAt(
  { askedAt, elapsedMs, date }: DatedAnswer,
  { asOf, dateLagMs }: AnswerAge & { readonly dateLagMs: number },
  token: Token,
): number | undefined {
  // `Date` already includes `dateLagMs`, a part of the age.
  if (date !== undefined) return Math.floor(date - elapsedMs - (askedAt - dateLagMs - asOf));
  if (token.serverTime === undefined) return undefined;
  return Math.floor(token.serverTime + asOf - token.askedAt);
}
