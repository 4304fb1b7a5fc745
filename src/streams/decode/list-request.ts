import { asyncScheduler, defer, finalize, map, of, switchMap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { isRetryableAtApi } from '../../core/errors.ts';
import { backoff } from '../flow/backoff.ts';
import type { Limit } from '../quota/token-bucket.ts';
import { parsing } from './decoder.ts';
import type { Decoder } from './decoder.ts';
import type { KeyOf } from '../records/key-of.ts';
import type { Answer, ListRequest } from './answer.ts';
import type { ListQuery } from '../http/list-query.ts';
import { isBroken } from './broken-answer.ts';
import type { BrokenAnswer } from './broken-answer.ts';
import { brokenPages } from './broken-pages.ts';
import type { RequestHooks } from '../http/http.ts';
import { logicalClock as newLogicalClock } from '../http/logical-clock.ts';
import type { LogicalClock } from '../http/logical-clock.ts';
import { pageIn } from './page-in.ts';
import { pageRequest } from '../http/page-request.ts';
import type { PageRequest, PageRequestOptions, RawPage } from '../http/page-request.ts';
import { unreadableTexts } from './unreadable-texts.ts';
import type { UnreadableTexts } from './unreadable-texts.ts';

/** How the pages of a list are asked for and decoded. */
export interface DecodedListOptions {
  /** Asks for a page. */
  readonly request: PageRequest;
  /** The list's address, for errors. */
  readonly url: URL;
  /** Makes records of a page's elements. Default: they are parsed, and have no key. */
  readonly decode?: Decoder;
  /** What of the list is known to be no JSON; kept by whoever makes its request again. Default nothing. */
  readonly texts?: UnreadableTexts;
  /** That of the request. */
  readonly logicalClock: LogicalClock;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1), for the jitter. Default Math.random. */
  readonly random?: () => number;
  /** Told of every answer that could not be read and is asked for again. Default nobody is. */
  readonly hooks?: Pick<RequestHooks, 'onRetry'>;
}

/**
 * Pages as records: each page is taken apart and decoded once its request is over, outside its place in the quota. What
 * is no page is asked for again with back-off, for ever. A record that is no JSON comes as an unreadable one when that
 * has not passed after a few tries; around one that keeps its page from being read, see `broken-pages.ts`.
 */
export function decodedList(options: DecodedListOptions): ListRequest {
  const { request, url, decode = parsing(), texts = unreadableTexts() } = options;
  const { logicalClock, scheduler = asyncScheduler, random, hooks: { onRetry } = {} } = options;
  const retrying = {
    scheduler,
    canPass: isRetryableAtApi,
    ...(random && { random }),
    ...(onRetry && { onRetry }),
  };

  const decoded = (
    raw: RawPage,
    query: ListQuery,
    isLastTry: () => boolean,
  ): Observable<Answer | BrokenAnswer> =>
    defer(() => {
      const { span, serverTime, elapsedMs } = raw;
      let isDecoded = false; // from then on the read is settled by who deals with the records
      return pageIn(raw, { url, query, decode, texts, isLastTry, scheduler }).pipe(
        map((page) => {
          isDecoded = true;
          return { ...page, span, serverTime, elapsedMs };
        }),
        finalize(() => {
          if (!isDecoded) logicalClock.settle(span.begin);
        }),
      );
    });
  /** What is no JSON is tried so often before it is taken for what the API has to say. */
  const asking = (query: ListQuery, limit: Limit, tries: number) => {
    let left = tries;
    const isLastTry = () => --left <= 0;
    return request(query, limit).pipe(
      switchMap((raw) => decoded(raw, query, isLastTry)),
      backoff(retrying),
    );
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

/** What {@link listRequest} needs. */
export interface ListRequestOptions extends Omit<PageRequestOptions, 'refusals'> {
  /** A record's key. Default: none has one. */
  readonly keyOf?: KeyOf;
}

/** The list request of one resource: each page is asked for within the quota, then parsed into records. */
export function listRequest(options: ListRequestOptions): ListRequest {
  const { keyOf, logicalClock = newLogicalClock() } = options;
  const request = pageRequest({ ...options, logicalClock });
  return decodedList({ ...options, request, logicalClock, decode: parsing(keyOf) });
}

/** What fails by the way is over by then: these take some two seconds. */
const TRIES = 5;
/** Ceiling of the first pause when nothing around a broken record leads on, which has taken a dozen requests. */
const AROUND_AGAIN_MS = 4_000;
