// Requests that investigate a failed page: which errors may depend on the page, when to give it up, and what to request instead.

import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryable, isRetryableAtApi } from '../../core/errors.ts';
import { waitFor } from '../flow/steps.ts';
import type { Steps } from '../flow/steps.ts';
import { oldestOf } from '../http/response-age.ts';
import type { LogicalClock } from '../http/logical-clock.ts';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { ListQuery, PagePatience } from '../http/page-request.ts';
import type { PageRecord } from '../records/page-record.ts';
import type { Answer } from './response.ts';

/** Thrown when a page is given up after an error that may depend on the page; `error` is that error. */
export class PageFailure extends Error {
  readonly error: unknown;

  constructor(error: unknown) {
    super('the page failed');
    this.error = error;
  }
}

/** HTTP statuses that mean a refusal: the same request would get the same status again. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 414, 416, 422]);
/** HTTP statuses, besides 5xx, with which servers respond if a page is too large, misaligned, or beyond the end of the list. */
const STATUSES: ReadonlySet<number> = new Set([...REFUSALS, 404, 408]);

/**
 * Whether an error may depend on the requested page. An outage causes the same errors; only a request for another page shows the
 * difference.
 */
export function mayDependOnPage(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  if (error.code === 'API_UNREACHABLE' || error.code === 'API_ANSWER') return true;
  const status = Number(error.context.status);
  return error.code === 'API_STATUS' && (status >= 500 || STATUSES.has(status));
}

/**
 * Whether the server refused the page, by a status such as 400 that the same request would get again. False for a {@link PageFailure}: pass
 * its `error`.
 */
export function isPageRefused(error: unknown): boolean {
  return error instanceof CellarstreamError && REFUSALS.has(Number(error.context.status));
}

/**
 * Minimum number of failures before a page that may be requested repeatedly (`some` tries) is given up. If it is too small, a short outage
 * is taken for a bad page.
 */
const MIN_FAILURES = 3;
/**
 * Minimum time, in ms, from the first to the newest failure of a page before it is given up, if it may be requested repeatedly (`some`
 * tries). If it is too small, a short outage is taken for a bad page.
 */
const LEAST_MS = 5_000;

/**
 * How often the request for a page has to fail until the page is given up:
 *
 * - `some`: at least three times, over at least five seconds.
 * - `one`: once.
 * - `probe`: once, as a test whether the API responds at all. If it is refused (by a status such as 400), the token may be the cause: the
 *   token source decides whether the request is repeated.
 */
type PageTries = 'some' | 'one' | 'probe';

/** Creates the object that decides when the requests for one page are given up. */
export function pagePatience(scheduler: SchedulerLike, tries: PageTries): PagePatience {
  let failures = 0;
  let since: number | undefined;
  return {
    isOfPage: (error) => tries !== 'probe' && isPageRefused(error),
    isGivenUp: (error) => {
      if (!mayDependOnPage(error)) return false;
      failures += 1;
      since ??= scheduler.now();
      if (tries !== 'some') return tries === 'one' || !isPageRefused(error);
      return failures >= MIN_FAILURES && scheduler.now() - since >= LEAST_MS;
    },
  };
}

/**
 * Creates the {@link PagePatience} for a page at a cursor. A refusal, by a status such as 400 or 410, is attributed to the page and not to
 * the token. The page is given up after at least three failures that may depend on it, over at least five seconds: some servers respond to
 * an expired cursor with 404 or 500.
 */
export function cursorPatience(scheduler: SchedulerLike): PagePatience {
  return { isOfPage: isGoneOrRefused, isGivenUp: pagePatience(scheduler, 'some').isGivenUp };
}

/**
 * Whether the error says that the server refused the page (by status, such as 400), or that the page is permanently deleted (410). Status
 * 404 does not count: gateways send it while the API is replaced.
 */
export function isGoneOrRefused(error: unknown): boolean {
  const isStatus = error instanceof CellarstreamError && error.code === 'API_STATUS';
  return isPageRefused(error) || (isStatus && error.context.status === 410);
}

/** HTTP statuses with which servers refuse a cursor that has expired, or a cursor that is the key of a deleted record. */
const CURSOR_REFUSALS: ReadonlySet<number> = new Set([400, 404, 410, 416, 422]);

/**
 * Whether an error of a page request means that the page's cursor is unusable: the server refused it, it is an address of another origin,
 * or the error was marked by {@link asCursorRefused}.
 */
export function isCursorRefused(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  const { isCursorRefused: isRefused, canPass } = error.context;
  if (isRefused === true || canPass === true) return isRefused === true;
  return error.code === 'API_STATUS' && CURSOR_REFUSALS.has(Number(error.context.status));
}

/**
 * Returns the error, marked so that {@link isCursorRefused} is true for it. Meant for a page that keeps failing while the server serves the
 * first page of the list.
 */
export function asCursorRefused(error: unknown): unknown {
  return error instanceof CellarstreamError ? withContext(error, { isCursorRefused: true }) : error;
}

export interface PageAttemptsOptions {
  readonly request: (query: ListQuery, tries: PageTries) => Observable<Answer>;
  readonly plan: PagePlan;
  readonly clock: LogicalClock;
}

export type PageQuery = ListQuery & PagePlace;

/**
 * Sends further requests after the request for a page has failed, to find the cause and to read the page in parts. Call `settle` at the
 * end: it closes the read of each response, except of one that was passed to `transferSettlement`, whose receiver closes that read.
 */
export class PageAttempts {
  readonly query: PageQuery;
  readonly error: unknown;
  readonly #options: PageAttemptsOptions;
  /**
   * Logical time at which the investigation of the failed page began. The span of a joined response (several responses made one) begins
   * here.
   */
  readonly #begin: number;
  readonly #unsettled = new Map<number, Answer>();
  #isJoined = false;
  /** The error of the failed page, marked as retryable. */
  readonly #retryable: unknown;

  constructor(options: PageAttemptsOptions, query: PageQuery, error: unknown) {
    this.#options = options;
    this.query = query;
    this.error = error;
    this.#retryable = asRetryable(error);
    this.#begin = options.clock.begin();
  }

  /** Whether the page belongs to a window of dates. */
  get isDated(): boolean {
    return this.query.from !== undefined;
  }

  *#request(part: PagePlace, tries: PageTries): Steps<Answer> {
    const answer = yield* waitFor(this.#options.request({ ...this.query, ...part }, tries));
    this.#unsettled.set(answer.span.begin, answer);
    return answer;
  }

  /**
   * Requests a page and returns the response. `part` is a part of the failed page, a page elsewhere in the list, or the failed page again.
   * Returns undefined if the request is given up after an error that may depend on the page; throws any other error.
   *
   * Also throws the error of the failed page, marked as retryable, if the response is the first to show that the server begins pages at
   * other offsets than requested. The retry then requests whole pages (see {@link PagePlan}).
   */
  *attempt(part: PagePlace, tries: PageTries = 'one'): Steps<Answer | undefined> {
    const { plan } = this.#options;
    let answer: Answer;
    try {
      answer = yield* this.#request(part, tries);
    } catch (failure) {
      if (!(failure instanceof PageFailure)) throw failure;
      const isUndecided = isRetryableAtApi(failure.error) && !isRetryableAtApi(this.error);
      // The API may be unavailable or the token invalid, so the failed page must not be given up.
      if (tries === 'probe' && isUndecided) throw failure.error;
      return undefined;
    }
    if (!plan.isWhole && isMisplaced(answer, part)) {
      plan.foundWhole();
      throw this.#retryable;
    }
    return answer;
  }

  /**
   * Requests a single record outside the failed page, to test whether the API is available, and returns the response. If this test fails,
   * throws the error of the failed page; if only the error of the test is transient, throws that error instead.
   */
  *probe(): Steps<Answer> {
    return (
      (yield* this.attempt({ offset: this.#oddOffsets[0], pageSize: 1 }, 'probe')) ?? this.giveUp()
    );
  }

  /**
   * Tests whether the server begins pages at the requested offsets: a page of one record and a page of two, both at an odd offset, have to
   * begin with the same record. Returns false if they do not, or if the server refuses the page of two. Returns true if the test has no
   * result, for example because the list is too short.
   *
   * @param probed The response to {@link probe}: the page of one record at the first offset.
   */
  *beginsWhereAsked(probed: Answer): Steps<boolean> {
    let single: Answer | undefined = probed;
    for (const [nth, offset] of this.#oddOffsets.entries()) {
      if (nth > 0) single = yield* this.attempt({ offset, pageSize: 1 });
      const record = single?.data[0];
      if (!record) continue;
      const place = { offset, pageSize: 2 };
      try {
        const answer = yield* this.#request(place, 'one');
        return !isMisplaced(answer, place) && answer.data[0]?.key === record.key;
      } catch (failure) {
        if (!(failure instanceof PageFailure)) throw failure;
        if (isPageRefused(failure.error)) return false;
      }
    }
    return true;
  }

  /**
   * List offsets for test requests; the first one is outside the failed page. The offsets are odd, because a server that begins pages at
   * multiples of their size can't begin a page of two records there.
   */
  get #oddOffsets(): readonly [number, ...number[]] {
    const { offset, pageSize } = this.query;
    return offset > 1 ? [1, 5] : [(offset + pageSize) | 1, 1, 5];
  }

  /**
   * Throws the error of the failed page, which ends the attempts to read the page. This error is not retryable if the server refused the
   * page.
   */
  giveUp(): never {
    throw this.error;
  }

  /**
   * Throws the error of the failed page, marked as retryable: the page is then requested again after a pause. Used if the cause may have
   * passed, or is not certain yet.
   */
  retryLater(): never {
    throw this.#retryable;
  }

  isGivenUp(error: unknown): boolean {
    return error === this.error || error === this.#retryable;
  }

  /**
   * Joins a page that was read in parts: the records before a gap (records that can't be read), a placeholder for each record of the gap,
   * and the records after it.
   */
  joinParts(
    before: readonly Answer[],
    gap: readonly PageRecord[],
    after: readonly Answer[],
  ): Answer {
    const data = [...allRecords(before), ...gap, ...allRecords(after)];
    const { total, hasNext } = after.at(-1)!;
    return { ...this.#join(before, after), data, total, hasNext, hasGap: true };
  }

  /**
   * Creates the response for a page that reaches beyond the API's cap (the list offset from which on the API serves no records). The
   * response has only the records before the cap, and no next page.
   *
   * @param before Responses that together contain the records before the cap.
   * @param other Response for a page elsewhere in the list, from which the total is taken.
   */
  cutResponse(before: readonly Answer[], other: Answer): Answer {
    const data = allRecords(before);
    return {
      ...this.#join(before, [other]),
      data,
      total: other.total,
      hasNext: false,
      isCut: true,
    };
  }

  /**
   * Returns the properties of a page joined from several responses: a `span` from before the first request until now, the `age` of the
   * oldest response, and the `serverTime` and `elapsedMs` of the first response in `after`.
   *
   * @param before Responses with the records before the gap or the cap.
   * @param after For a gap: responses with the records behind it. For a cap: the response for a page elsewhere in the list.
   */
  #join(before: readonly Answer[], after: readonly Answer[]) {
    this.#isJoined = true;
    const { serverTime, elapsedMs = 0 } = after[0]!;
    const age = oldestOf([...before, ...after].map((part) => part.age));
    const span = this.#options.clock.answered(this.#begin);
    return { span, serverTime, elapsedMs, age };
  }

  transferSettlement({ span }: Answer): void {
    this.#unsettled.delete(span.begin);
  }

  settle(): void {
    const { clock } = this.#options;
    for (const answer of this.#unsettled.values()) {
      clock.settle(answer.span.begin);
      if (!this.#isJoined) answer.records?.settle(); // a joined response still reads the bodies of its parts
    }
    if (!this.#isJoined) clock.settle(this.#begin);
  }
}

/**
 * Returns an error marked as temporary, so that the request is repeated later. An error of another class than CellarstreamError is returned
 * unchanged.
 */
export function asRetryable(error: unknown): unknown {
  if (isRetryable(error) || !(error instanceof CellarstreamError)) return error;
  return withContext(error, { canPass: true });
}

function withContext(error: CellarstreamError, more: CellarstreamError['context']) {
  const { code, message, context } = error;
  return new CellarstreamError(code, message, { context: { ...context, ...more }, cause: error });
}

function isMisplaced({ data, reported }: Answer, { offset }: Pick<PagePlace, 'offset'>): boolean {
  return data.length > 0 && reported?.offset !== undefined && reported.offset !== offset;
}

export function allRecords(answers: readonly Answer[]): readonly PageRecord[] {
  return answers.flatMap(({ data }) => data);
}
