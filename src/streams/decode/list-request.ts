import {
  asyncScheduler,
  catchError,
  defer,
  finalize,
  map,
  of,
  switchMap,
  tap,
  throwError,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { isJsonObject, parseJson, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import { jsonText, pageElements } from '../../schemas/json/json-bytes.ts';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { backoff } from '../flow/backoff.ts';
import { Body } from '../http/body.ts';
import { where } from '../http/http.ts';
import type { RequestHooks } from '../http/http.ts';
import type { ListQuery } from '../http/list-query.ts';
import { logicalClock as newLogicalClock } from '../http/logical-clock.ts';
import type { LogicalClock } from '../http/logical-clock.ts';
import { pageRequest } from '../http/page-request.ts';
import type {
  PagePatience,
  PageRequest,
  PageRequestOptions,
  RawPage,
} from '../http/page-request.ts';
import { PagePlan } from '../http/page-plan.ts';
import type { PagePlace } from '../http/page-plan.ts';
import type { Limit } from '../quota/token-bucket.ts';
import type { KeyOf } from '../records/key-of.ts';
import { PageRecords } from '../records/page-records.ts';
import { answerOf, pageOf } from './answer.ts';
import type { Answer, ListRequest, Page } from './answer.ts';
import { isBroken } from './broken-answer.ts';
import type { BrokenAnswer, BrokenPage } from './broken-answer.ts';
import { brokenPages } from './broken-pages.ts';
import { parsing } from './decoder.ts';
import { DatedPatience } from './dated-patience.ts';
import type { Decoder } from './decoder.ts';
import { failingPages } from './failing-pages.ts';
import { FailingPlaces } from './failing-places.ts';
import { isNoJson, pageAround } from './page-around.ts';
import type { AroundPage } from './page-around.ts';
import { mayBeOfPage, PageFailure, pagePatience } from './page-failure.ts';
import { isEmptyPage, saysFailure } from './pagination.ts';
import { stepwise } from './stepwise.ts';
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
  /** Sees each answer before anything of it is hidden. Default nobody does. */
  readonly look?: (answer: Answer, query: ListQuery) => void;
  /** Gives a record without its personal fields; nobody else sees it before. Default nothing is hidden. */
  readonly hide?: ((json: JsonValue) => JsonValue) | undefined;
  /** What of the list is known to be no JSON; kept by whoever makes its request again. Default nothing. */
  readonly texts?: UnreadableTexts;
  /** Where records of the list stand that no answer holds; kept likewise. Default nowhere. */
  readonly places?: FailingPlaces;
  /** The plan by which pages of the list are asked for: what fails here changes it. Default a new one. */
  readonly plan?: PagePlan;
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
 * has not passed after a few tries; around one that keeps its page from being read, see `broken-pages.ts`. A page whose request
 * fails again and again is read in another way if the API answers other pages, see `failing-pages.ts`. A query with modification dates
 * is given up after a while, see `dated-patience.ts`.
 */
export function decodedList(options: DecodedListOptions): ListRequest {
  const { request, url, decode = parsing(), texts = unreadableTexts() } = options;
  const { logicalClock, scheduler = asyncScheduler, random, hooks: { onRetry } = {} } = options;
  const { look, hide, places = new FailingPlaces(), plan = new PagePlan() } = options;
  const retryingFor = (patience: DatedPatience | undefined) => ({
    scheduler,
    canPass: (error: unknown) => isRetryableAtApi(error) && patience?.fails(error) !== true,
    ...(random && { random }),
    ...(onRetry && { onRetry }),
  });

  /** Errors with `API_ANSWER` when it is no page, or may be another the next time, and with what `decode` throws. */
  const pageIn = (
    raw: RawPage,
    query: ListQuery,
    isLastTry: () => boolean,
  ): Observable<Page | BrokenPage> => {
    if (raw.isNotFound) return of(NOTHING);
    if (raw.isEmpty) return of(EMPTY_PAGE);
    /** `isNoPage`: nothing of the answer can be read, so another page may be answered better. */
    const failed = (what: string, isNoPage: boolean) =>
      new CellarstreamError('API_ANSWER', `${where(url)} sent ${what}`, {
        context: { offset: query.offset, ...(isNoPage && { isNoPage }) },
      });
    const around = (error: Error): Observable<Page | BrokenPage> =>
      stepwise(() => pageAround(raw.body, { query, decode, texts }), scheduler).pipe(
        map((found) => {
          const isTried = isLastTry() || (found !== undefined && isKnown(found, texts));
          if (!found || !isTried) {
            // The parser's own message quotes the text, which may hold personal fields.
            const kind = error instanceof RangeError ? ' (RangeError)' : '';
            throw failed(`an answer that is not JSON${kind}`, !found);
          }
          const { page, place, rest } = found;
          if (!page) return { broken: { place, rest } };
          found.texts.forEach(texts.add);
          return page;
        }),
      );
    return stepwise(() => decodedPage(raw, decode, query.offset), scheduler).pipe(
      map((page) => {
        if (page) return page;
        throw failed('no page: it has no list of records in "data"', true);
      }),
      catchError((error: unknown) => {
        if (!isNoJson(error)) throw error;
        return around(error);
      }),
    );
  };
  const decoded = (
    raw: RawPage,
    query: ListQuery,
    isLastTry: () => boolean,
  ): Observable<Answer | BrokenAnswer> =>
    defer(() => {
      let isDecoded = false; // from then on the read is settled by who deals with the records
      return pageIn(raw, query, isLastTry).pipe(
        tap({ next: () => raw.reportPage(true), error: () => raw.reportPage(false) }),
        map((page) => {
          isDecoded = true;
          return 'broken' in page ? { ...page, ...whenOf(raw) } : answerOf(page, raw);
        }),
        finalize(() => {
          if (!isDecoded) logicalClock.settle(raw.span.begin);
        }),
      );
    });
  /** The ways to read a page; with `dated` its tries end. */
  const readingWith = (dated?: DatedPatience) => {
    const retrying = retryingFor(dated);
    /** @param tries Requests with an answer that is not JSON, before that answer counts. */
    const asking = (query: ListQuery, limit: Limit, tries: number, patience?: PagePatience) => {
      let left = tries;
      const isLastTry = () => --left <= 0;
      const both: PagePatience = {
        isOfPage: (error) => patience?.isOfPage(error) === true,
        isGivenUp: (error) => dated?.fails(error) === true || patience?.isGivenUp(error) === true,
      };
      const asFailureIf = <T>(isOfPage: (error: unknown) => boolean) =>
        catchError<T, Observable<never>>((error: unknown) =>
          throwError(() => (patience && isOfPage(error) ? new PageFailure(error) : error)),
        );
      return request(query, limit, both).pipe(
        asFailureIf(mayBeOfPage),
        switchMap((raw) =>
          decoded(raw, query, isLastTry).pipe(
            asFailureIf((error) => isNoPage(error) && patience!.isGivenUp(error)),
          ),
        ),
        tap(() => dated?.works()),
        backoff(retrying),
      );
    };

    /** The page, or what can be read around its broken records; errors with a `PageFailure` if the requests are given up. */
    const reading = (
      query: ListQuery,
      limit: Limit,
      patience?: PagePatience,
    ): Observable<Answer> => {
      const around = brokenPages({
        url,
        ask: (part) => asking(part, limit, 1),
        texts,
        settle: ({ begin }) => logicalClock.settle(begin),
      });
      return defer(() => asking(query, limit, TRIES, patience)).pipe(
        switchMap((answer) => (isBroken(answer) ? around(query, answer) : of(answer))),
        backoff({ ...retrying, firstMs: AROUND_AGAIN_MS }),
      );
    };
    /** A page, read in another way once its requests were given up. */
    const page = (query: ListQuery & PagePlace, limit: Limit): Observable<Answer> =>
      defer(() => {
        let isHurried = plan.isTrying || places.size > 0;
        const narrowed = failingPages({
          ask: (part, tries) => reading(part, limit, pagePatience(scheduler, tries)),
          plan,
          places,
          clock: logicalClock,
          scheduler,
        });
        return defer(() =>
          reading(query, limit, pagePatience(scheduler, isHurried ? 'one' : 'some')),
        ).pipe(
          catchError((failure: unknown) => {
            if (!(failure instanceof PageFailure)) return throwError(() => failure);
            isHurried = true;
            return narrowed(query, failure.error);
          }),
          backoff({ ...retrying, firstMs: AROUND_AGAIN_MS }),
        );
      });
    return (query: ListQuery, limit: Limit) =>
      isPage(query) ? page(query, limit) : reading(query, limit);
  };
  const patiently = readingWith();
  const asked: ListRequest = (query, limit) => {
    if (query.modifiedFromDate === undefined) return patiently(query, limit);
    return defer(() => {
      const patience = new DatedPatience(scheduler, where(url));
      return readingWith(patience)(query, limit).pipe(
        catchError((error: unknown) => throwError(() => patience.errorOf(error))),
      );
    });
  };

  return (query, limit) =>
    asked(query, limit).pipe(
      map((answer) => {
        look?.(answer, query);
        if (!hide) return answer;
        const data = answer.data.map((record) => record.hidden(hide));
        answer.records?.settle();
        return { ...answer, data, records: new PageRecords(data) };
      }),
    );
}

function isNoPage(error: unknown): boolean {
  return error instanceof CellarstreamError && error.context.isNoPage === true;
}

function isPage(query: ListQuery): query is ListQuery & PagePlace {
  return (
    query.offset !== undefined && query.pageSize !== undefined && query.orderNumber === undefined
  );
}

/**
 * The page that a body is, its elements decoded one by one; it stops now and then. Undefined where the body is JSON, and no
 * page.
 *
 * @throws SyntaxError or RangeError when it isn't JSON.
 */
export function* decodedPage(
  page: Pick<RawPage, 'body'>,
  decode: Decoder,
  offset = 0,
): Generator<void, Page | undefined> {
  const { body } = page;
  const parts = yield* pageElements(body.bytes, (at) => decode(body, at));
  if (parts) {
    const envelope = parseJson(parts.rest);
    if (parts.elements.length === 0 && isJsonObject(envelope) && saysFailure(envelope)) {
      return undefined;
    }
    return pageOf(envelope, parts.elements, { offset, body });
  }
  // Of another layout: each element is written as it would stand in a page, and decoded from that.
  const whole = parseJson(jsonText(body.bytes));
  const data = isJsonObject(whole) ? whole.data : undefined;
  if (!Array.isArray(data)) return isEmptyPage(whole) ? pageOf(whole, [], { offset }) : undefined;
  return pageOf(
    whole,
    data.flatMap((each) => decode(new Body(Buffer.from(stringifyJson(each))), 0).values),
    { offset },
  );
}

function whenOf({ span, serverTime, elapsedMs, age }: RawPage) {
  return { span, serverTime, elapsedMs, age };
}

function isKnown({ page, texts, rest }: AroundPage, known: UnreadableTexts): boolean {
  return page ? texts.every(known.has) : known.has(rest);
}

const NOTHING = {
  records: new PageRecords([]),
  pagination: { total_records: 0, has_next_page: false },
  notFound: true,
} as const;

/** An empty page of which nothing else is known. */
const EMPTY_PAGE = {
  records: new PageRecords([]),
  pagination: { total_records: undefined, has_next_page: false },
} as const;

/** What {@link listRequest} needs. */
export interface ListRequestOptions extends Omit<PageRequestOptions, 'bodies'> {
  /** A record's key. Default: none has one. */
  readonly keyOf?: KeyOf;
  /** The plan that `pages` reads the list by: what fails here changes it. Default one of its own. */
  readonly plan?: PagePlan;
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
