import { asyncScheduler, defer, finalize, map, of, switchMap, take, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { backoff, RETRY_AFTER } from '../flow/backoff.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';
import type { ListQuery } from './list-query.ts';
import type { BodyPool } from './body.ts';
import { answerAges } from './answer-age.ts';
import type { AnswerAge, AnswerAges, DatedAnswer } from './answer-age.ts';
import { blockedError, exchange, isJson, isSuccess, statusError, where } from './http.ts';
import type { HttpAnswer, RequestHooks } from './http.ts';
import { logicalClock as newLogicalClock } from './logical-clock.ts';
import type { LogicalClock, Span } from './logical-clock.ts';
import type { Token } from './login.ts';
import type { TokenSource } from './token.ts';
import type { TokenOutcome, TokenUse } from './token-life.ts';

/** The body of an answer, before anybody has looked into it. */
export interface RawPage extends Pick<HttpAnswer, 'body' | 'text'> {
  /** The answer was a 404 that is no page of HTML, to a request for one record: who said it? */
  readonly isNotFound: boolean;
  /** The server said that there is nothing: 204 or 205, which have no body. */
  readonly isEmpty?: boolean;
  /** When the request was under way, in the order of things; see {@link LogicalClock}. */
  readonly span: Span;
  /** The server's clock at about the time that the answer shows, never later: ms; undefined if it never told. */
  readonly serverTime: number | undefined;
  /** How long the answer took, from the request to its last byte, ms. */
  readonly elapsedMs: number;
  readonly age: AnswerAge;
  /** Reports to the token whether the body was a page: nothing else proves that the server accepts the token. */
  readonly reportPage: (isPage: boolean) => void;
}

/** How long a page is asked for that may be the cause of its own failures. */
export interface PagePatience {
  /** Called with each error that can pass: true ends the tries with that error. */
  readonly isGivenUp: (error: unknown) => boolean;
  /** Whether the page may be the cause of a refusal, such as a 400, and the caller looks into that: it then says nothing about the token. */
  readonly isOfPage: (error: unknown) => boolean;
}

/**
 * Asks for one page; `limit` is the lane of the quota to wait in. Emits once and completes.
 *
 * @param patience Default: tries go on for ever.
 */
export type PageRequest = (
  query: ListQuery,
  limit: Limit,
  patience?: PagePatience,
) => Observable<RawPage>;

const ENDLESS: PagePatience = { isGivenUp: () => false, isOfPage: () => false };

/** How pages are asked for: where, with which token, and what is told of it. */
export interface PageRequestOptions {
  /** The list's address, such as `https://api.example/v1/orders`. */
  readonly url: URL;
  /** Connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  readonly tokens: TokenSource;
  /** Orders the requests that may meet the same records: one clock a resource. Default its own. */
  readonly logicalClock?: LogicalClock;
  /** Tells how old answers are: one for all lists of an API. Default its own. */
  readonly ages?: AnswerAges;
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

/**
 * Makes the list request of one resource: quota, then token, then HTTP. What can pass is tried again with back-off,
 * for ever, and each try waits for the quota: redirects and 404 too, which gateways send while the API behind them is
 * being replaced. Its place in the quota is given back with the answer: what that holds is for later stages.
 *
 * The token is taken after the wait for the quota, so that it is fresh when it is sent. When there is none just then, the request
 * gives its start up, and waits for the quota anew once there is a token. If requests kept their starts while they all waited for
 * one login, they would reach the server later than the quota's log says.
 *
 * Every outcome is reported to the token (see `token-life.ts`), which decides when a refused token (401 or 403) is tried again and when it is renewed. A
 * list that refuses one new token after the other can't be read with this key: it errors with `API_STATUS`, and leaves the token to
 * the other lists. Other statuses that can't pass are final too, but only after they have been seen with a fresh token.
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
            const lastTry = isRepeated ? last.sentAt : undefined;
            Object.assign(last, { status, token, sentAt: askedAt });
            throw failure(answer, { ...use, lastTry }, query, isOfPage);
          }
          const { date, ageMs } = answer;
          const dated = { askedAt, elapsedMs, date, ageMs };
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
  /** In ms on the scheduler's clock. */
  sentAt?: number;
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
