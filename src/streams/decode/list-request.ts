// The request of a list: sends page requests, decodes the responses into records, and retries or works around failures.

import { asyncScheduler, catchError, defer, map, of, switchMap, tap, throwError } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { isPagedByOffset } from '../../description/description.ts';
import type { ListDescription } from '../../description/description.ts';
import { parseJson } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import { backoff } from '../flow/backoff.ts';
import type { BackoffOptions } from '../flow/backoff.ts';
import { inSteps, waitFor } from '../flow/steps.ts';
import type { Steps } from '../flow/steps.ts';
import { loggableAddress } from '../http/http.ts';
import type { RequestHooks } from '../http/http.ts';
import { LogicalClock } from '../http/logical-clock.ts';
import { PagePlan } from '../http/page-plan.ts';
import { pageRequest } from '../http/page-request.ts';
import { RequestPlan } from '../http/request-plan.ts';
import type {
  ListQuery,
  PagePatience,
  PageRequest,
  PageRequestOptions,
  RawPage,
} from '../http/page-request.ts';
import type { Limit } from '../quota/token-bucket.ts';
import type { KeyOf } from '../records/key-of.ts';
import { PageRecords } from '../records/page-records.ts';
import { Stamps } from '../records/stamps.ts';
import type { Answer, ListRequest, DecodedPage } from './response.ts';
import { FailingOffsets } from './around-failing.ts';
import { BrokenPageReader, isBroken } from './broken-pages.ts';
import type { BrokenResponse, BrokenPage } from './broken-pages.ts';
import { DatedPatience } from './dated-patience.ts';
import { decodedPage, isNoJson, pageAround, stepwise, UnreadableTexts } from './decoded-page.ts';
import type { AroundPage } from './decoded-page.ts';
import { parsingDecoder } from './decoder.ts';
import type { Decoder } from './decoder.ts';
import { ResponseLayout } from './response-layout.ts';
import { failingPages } from './failing-pages.ts';
import {
  asCursorRefused,
  asRetryable,
  cursorPatience,
  isCursorRefused,
  isGoneOrRefused,
  mayDependOnPage,
  PageFailure,
  pagePatience,
} from './page-attempts.ts';
import type { PageQuery } from './page-attempts.ts';

/** Options of {@link decodedList}: how the pages of a list are requested and decoded. */
export interface DecodedListOptions {
  readonly request: PageRequest;
  readonly url: URL;
  /** Description of the list, which says how its responses are read. */
  readonly list: ListDescription;
  /** Decodes the elements of a page. Default: elements are parsed, and records have no key. */
  readonly decode?: Decoder;
  /** Called with each response to a request for records, before personal fields are hidden in it. Default: not called. */
  readonly inspect?: (answer: Answer, query: ListQuery) => void;
  /** Removes credentials from the address of a next page. Default: the address is kept as the API sent it. */
  readonly cleanNext?: ((address: string) => string) | undefined;
  /** Hides the personal fields of a record. Default: nothing is hidden. */
  readonly hide?: ((json: JsonValue) => JsonValue) | undefined;
  /**
   * Texts that are not JSON, and that the server sent in place of a record in earlier responses. A page is not requested again because of
   * such a text. Pass the same set whenever the list's request is created again. Default: a new set.
   */
  readonly texts?: UnreadableTexts;
  /**
   * Known offsets of records that make pages fail. Pass the same object whenever the list's request is created again. Default: none known.
   */
  readonly failingOffsets?: FailingOffsets;
  /**
   * Chooses list offsets and sizes of pages, depending on how the server treats these parameters. Updated when large pages fail. Default: a
   * new plan.
   */
  readonly plan?: PagePlan;
  readonly logicalClock: LogicalClock;
  readonly scheduler?: SchedulerLike;
  readonly random?: () => number;
  /**
   * `onRetry` is called before a page is requested again: because its response could not be decoded, or because reading the page whole and
   * then in parts has failed.
   */
  readonly hooks?: Pick<RequestHooks, 'onRetry'>;
}

/**
 * Creates the request of a list that returns decoded records. Responses that can't be decoded are handled as follows:
 *
 * - If a response is not a page, the page is requested again with back-off. If it keeps failing while the API serves other pages,
 *   `failing-pages.ts` reads it in another way.
 * - If an element is not JSON, it becomes an unreadable record after a few tries.
 * - If the rest of the page can't be read because of such an element, `broken-pages.ts` reads the page.
 */
export function decodedList(options: DecodedListOptions): ListRequest {
  const { url, inspect, hide, scheduler = asyncScheduler } = options;
  const list: List = {
    ...options,
    scheduler,
    layout: new ResponseLayout(options.list),
    decode: options.decode ?? parsingDecoder(),
    texts: options.texts ?? new UnreadableTexts(),
    failingOffsets: options.failingOffsets ?? new FailingOffsets(),
    plan: options.plan ?? new PagePlan(options.list),
  };
  const patient = new PageReader(list);
  const read: ListRequest = (query, limit) => {
    if (query.from === undefined) return patient.read(query, limit);
    return defer(() => {
      const patience = new DatedPatience(scheduler, loggableAddress(url));
      return new PageReader(list, patience)
        .read(query, limit)
        .pipe(catchError((error: unknown) => throwError(() => patience.errorOf(error))));
    });
  };

  return (query, limit) =>
    read(query, limit).pipe(
      map((answer) => {
        if (!query.isTotal) inspect?.(answer, query);
        if (!hide) return answer;
        const data = answer.data.map((record) => record.hidden(hide));
        answer.records?.settle();
        return { ...answer, data, records: new PageRecords(data) };
      }),
    );
}

/** {@link DecodedListOptions} with the defaults filled in. */
type List = DecodedListOptions &
  Required<
    Pick<DecodedListOptions, 'decode' | 'texts' | 'failingOffsets' | 'plan' | 'scheduler'>
  > & { readonly layout: ResponseLayout };

function* pageIn(
  { url, layout: ofList, decode, texts, scheduler }: List,
  raw: RawPage,
  query: ListQuery,
  isLastTry: () => boolean,
): Steps<DecodedPage | BrokenPage> {
  if (raw.isNotFound) return NO_SUCH_RECORD;
  if (query.isTotal) return totalPage(raw, ofList, url);
  if (raw.isEmpty) return EMPTY_PAGE;
  const layout = query.key === undefined ? ofList : ofList.single;
  /**
   * Creates the error `API_ANSWER` for a response that is not a valid page.
   *
   * @param isNoPage True if the response is no page at all, so that the caller may give the page up. False if it is a page with some
   * malformed elements.
   */
  const failed = (message: string, isNoPage: boolean) =>
    new CellarstreamError('API_ANSWER', message, {
      context: { offset: query.offset, ...(isNoPage && { isNoPage }) },
    });
  try {
    const page = yield* waitFor(
      stepwise(() => decodedPage(raw, layout, decode, query.offset), scheduler),
    );
    if (typeof page === 'string') throw failed(page, true);
    return page;
  } catch (error) {
    if (!isNoJson(error)) throw error;
    const found = yield* waitFor(
      stepwise(() => pageAround(raw, query, layout, decode, texts), scheduler),
    );
    const isTried = isLastTry() || (found !== undefined && isKnown(found, texts));
    if (!found || !isTried) {
      // The parser's own message is left out: it quotes the text, which may contain personal fields.
      const kind = error instanceof RangeError ? ' (RangeError)' : '';
      throw failed(`${loggableAddress(url)} sent a response that is not JSON${kind}`, !found);
    }
    const { page, place, rest } = found;
    if (!page) return { broken: { place, rest } };
    for (const text of found.texts) texts.add(text);
    return page;
  }
}

/** Reads pages of one list; retries or works around failures. */
class PageReader {
  readonly #list: List;
  readonly #dated: DatedPatience | undefined;
  readonly #retrying: BackoffOptions & Required<Pick<BackoffOptions, 'canPass'>>;

  /** @param dated Decides when a query with date parameters is given up because it keeps failing. Default: it is retried without limit. */
  constructor(list: List, dated?: DatedPatience) {
    const { scheduler, random, hooks: { onRetry } = {} } = list;
    this.#list = list;
    this.#dated = dated;
    this.#retrying = {
      scheduler,
      canPass: (error) => isRetryableAtApi(error) && dated?.recordFailure(error) !== true,
      random,
      onRetry,
    };
  }

  read(query: ListQuery, limit: Limit): Observable<Answer> {
    if (query.cursor !== undefined) return this.#readAtCursor(query, limit);
    const hasParts = isPage(query) && isPagedByOffset(this.#list.list);
    return hasParts ? this.#readInParts(query, limit) : this.#readWhole(query, limit);
  }

  /**
   * Reads the page at a cursor. Errors if the server refuses the cursor, or if the page keeps failing while the server serves the first
   * page of the list (see `isCursorRefused`). All other temporary failures are retried.
   */
  #readAtCursor(query: ListQuery, limit: Limit): Observable<Answer> {
    return inSteps(() => this.#atCursor(query, limit)).pipe(
      backoff({
        ...this.#retrying,
        canPass: (error) => !isCursorRefused(error) && this.#retrying.canPass(error),
        firstMs: AROUND_AGAIN_MS,
      }),
    );
  }

  *#atCursor(query: ListQuery, limit: Limit): Steps<Answer> {
    const { scheduler, logicalClock } = this.#list;
    const page = () => waitFor(this.#readWhole(query, limit, cursorPatience(scheduler)));
    let failure: unknown;
    try {
      return yield* page();
    } catch (error) {
      if (!(error instanceof PageFailure)) throw error;
      failure = error.error;
    }
    if (isGoneOrRefused(failure)) throw failure;
    const first: Omit<ListQuery, 'cursor'> & { cursor?: string } = { ...query, offset: 0 };
    delete first.cursor;
    try {
      const patience = pagePatience(scheduler, 'one');
      const { span, records } = yield* waitFor(this.#readWhole(first, limit, patience));
      logicalClock.settle(span.begin);
      records?.settle();
    } catch (error) {
      throw error instanceof PageFailure ? asRetryable(failure) : error;
    }
    try {
      return yield* page();
    } catch (error) {
      throw error instanceof PageFailure ? asCursorRefused(error.error) : error;
    }
  }

  /**
   * Requests a page; each request starts when `limit` allows. If the requests for the whole page are given up, requests the page in smaller
   * parts, or without the record that makes it fail.
   */
  #readInParts(query: PageQuery, limit: Limit): Observable<Answer> {
    const { scheduler, plan, failingOffsets, logicalClock } = this.#list;
    return defer(() => {
      let isHurried = plan.isTrying || failingOffsets.size > 0;
      const narrowed = failingPages({
        request: (part, tries) => this.#readWhole(part, limit, pagePatience(scheduler, tries)),
        plan,
        failingOffsets,
        clock: logicalClock,
        scheduler,
      });
      return defer(() =>
        this.#readWhole(query, limit, pagePatience(scheduler, isHurried ? 'one' : 'some')),
      ).pipe(
        catchError((failure: unknown) => {
          if (!(failure instanceof PageFailure)) return throwError(() => failure);
          isHurried = true;
          return narrowed(query, failure.error);
        }),
        backoff({ ...this.#retrying, firstMs: AROUND_AGAIN_MS }),
      );
    });
  }

  /**
   * Requests a page within the quota `limit`. If an element is not JSON and its end is unknown, reads the records around it by further
   * requests. Errors with a `PageFailure` once `patience` gives up the page.
   */
  #readWhole(query: ListQuery, limit: Limit, patience?: PagePatience): Observable<Answer> {
    const { url, texts, logicalClock: clock } = this.#list;
    const request = (part: ListQuery) => this.#request(part, limit, 1);
    const hasParts = this.#list.list.paging === 'offset';
    return defer(() => this.#request(query, limit, TRIES, patience)).pipe(
      switchMap((answer) =>
        isBroken(answer)
          ? new BrokenPageReader({ url, request, texts, clock, hasParts }, query).read(answer)
          : of(answer),
      ),
      backoff({ ...this.#retrying, firstMs: AROUND_AGAIN_MS }),
    );
  }

  /**
   * Requests and decodes a page or a single record. The request starts when `limit` allows.
   *
   * @param tries Number of tries after which elements that are not JSON are accepted.
   * @param patience Decides when the request is given up; the observable then errors with a {@link PageFailure}. Default: temporary
   * failures are retried for ever, except in a query with dates (see {@link DatedPatience}).
   */
  #request(query: ListQuery, limit: Limit, tries: number, patience?: PagePatience) {
    let left = tries;
    const isLastTry = () => --left <= 0;
    const both: PagePatience = {
      isOfPage: (error) => patience?.isOfPage(error) === true,
      isGivenUp: (error) =>
        this.#dated?.recordFailure(error) === true || patience?.isGivenUp(error) === true,
    };
    return this.#list.request(query, limit, both).pipe(
      catchError((error: unknown) =>
        throwError(() => (patience && mayDependOnPage(error) ? new PageFailure(error) : error)),
      ),
      switchMap((raw) => inSteps(() => this.#decoded(raw, query, isLastTry, patience))),
      backoff(this.#retrying),
    );
  }

  /**
   * Decodes a response. Throws `API_ANSWER` if the body is not a page, or a {@link PageFailure} if `patience` then gives up the page.
   * Elements that are not valid JSON are handled as follows:
   *
   * - If one of them is new (not in `texts`), and this is not the last try: throws `API_ANSWER`, so that the page is requested again.
   * - Otherwise, if the end of such an element is unknown: returns a {@link BrokenResponse}.
   * - Otherwise: returns the page, with unreadable records in place of these elements.
   *
   * @param isLastTry Whether this is the last try. Called only if the body is not valid JSON.
   */
  *#decoded(
    raw: RawPage,
    query: ListQuery,
    isLastTry: () => boolean,
    patience: PagePatience | undefined,
  ): Steps<Answer | BrokenResponse> {
    const { list, cleanNext, logicalClock } = this.#list;
    const { span, serverTime, elapsedMs, age } = raw;
    let decoded: DecodedPage | BrokenPage | undefined;
    try {
      decoded = yield* pageIn(this.#list, raw, query, isLastTry);
    } catch (error) {
      raw.reportPage(false);
      const isGivenUp = isUnreadablePage(error) && patience?.isGivenUp(error);
      throw isGivenUp ? new PageFailure(error) : error;
    } finally {
      if (!decoded) logicalClock.settle(span.begin); // otherwise the consumer of the records settles the read
    }
    const page = decoded;
    raw.reportPage(true);
    this.#dated?.recordSuccess();
    const when = { span, serverTime, elapsedMs, age };
    if ('broken' in page) return { ...page, ...when };
    const isLink = page.next !== undefined && list.paging === 'link';
    return {
      ...page,
      ...(isLink && cleanNext && { next: cleanNext(page.next) }),
      ...when,
      get data() {
        return page.records.all();
      },
    };
  }
}

function isUnreadablePage(error: unknown): boolean {
  return error instanceof CellarstreamError && error.context.isNoPage === true;
}

function isPage(query: ListQuery): query is PageQuery {
  return query.offset !== undefined && query.pageSize !== undefined && query.key === undefined;
}

function isKnown({ page, texts, rest }: AroundPage, known: UnreadableTexts): boolean {
  return page ? texts.every((text) => known.has(text)) : known.has(rest);
}

const EMPTY_PAGE = {
  records: new PageRecords([]),
  total: undefined,
  hasNext: false,
} as const;

const NO_SUCH_RECORD = { ...EMPTY_PAGE, total: 0, notFound: true } as const;

/** Returns the response to the request for a total as a page without records. Throws `API_ANSWER` if it has no number. */
function totalPage({ text }: RawPage, layout: ResponseLayout, url: URL): DecodedPage {
  let total: number | undefined;
  try {
    total = layout.totalIn(parseJson(text));
  } catch {
    total = undefined; // not JSON
  }
  if (total !== undefined) return { ...EMPTY_PAGE, total };
  const message = `${loggableAddress(url)}: the response to the request for the total has no number at its place`;
  throw new CellarstreamError('API_ANSWER', message);
}

/** Options of {@link listRequest}. */
export interface ListRequestOptions extends Omit<PageRequestOptions, 'bodies'> {
  /** Description of the list, which says how its responses are read. */
  readonly list: ListDescription;
  /** Returns the key of a record. Default: records have no key. */
  readonly keyOf?: KeyOf;
  /** Reads creation and modification times, which `poll` needs. Default: from the fields that the description names, in ISO 8601. */
  readonly stamps?: Stamps;
  /** Chooses offsets and sizes of pages. Pass the same plan to `pages`. Default: a new plan. */
  readonly plan?: PagePlan;
}

/** Creates the request of one list: each page is requested within the quota, then parsed into records. */
export function listRequest(options: ListRequestOptions): ListRequest {
  const { list, keyOf, logicalClock = new LogicalClock() } = options;
  const { stamps = new Stamps(list) } = options;
  const requests = new RequestPlan(options);
  const request = pageRequest(requests, { ...options, logicalClock });
  const decode = parsingDecoder(keyOf, stamps);
  const answers = decodedList({ ...options, url: requests.url, request, logicalClock, decode });
  if (options.logicalClock) return answers;
  // The caller does not have the clock, so it can't close its reads: the clock would remember each of them.
  return (query, limit) =>
    answers(query, limit).pipe(tap(({ span }) => logicalClock.settle(span.begin)));
}

/**
 * Maximum number of requests for a page that has elements which are not JSON. After the last one, these elements are accepted as unreadable
 * records. If the number is too small, a short corruption in transit makes records unreadable.
 */
const TRIES = 5;
/**
 * Upper bound of the first back-off pause, in ms, after a page could be read neither as a whole nor in parts. It is high because trying
 * both takes a dozen requests.
 */
const AROUND_AGAIN_MS = 4_000;
