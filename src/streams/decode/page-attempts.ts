// The requests by which a failed page is looked into: which errors may depend on the page, when to give it up, and what is asked instead.

import { catchError, map, of, switchMap, tap, throwError } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { oldestOf } from '../http/answer-age.ts';
import type { LogicalClock } from '../http/logical-clock.ts';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { ListQuery, PagePatience } from '../http/page-request.ts';
import type { PageRecord } from '../records/page-record.ts';
import type { Answer } from './answer.ts';

/** A page's request failed in a way that may depend on what it asked for; `error` says how. */
export class PageFailure extends Error {
  readonly error: unknown;

  constructor(error: unknown) {
    super('the page failed');
    this.error = error;
  }
}

/** Statuses other than 5xx with which servers answer to pages that are too large, misplaced, or beyond the end. */
const STATUSES: ReadonlySet<number> = new Set([400, 404, 408, 413, 414, 416, 422]);
/** Those that say that a repetition is pointless. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 414, 416, 422]);

/** Whether an error may depend on which page was asked for. An outage causes the same errors: only another page tells them apart. */
export function mayBeOfPage(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  if (error.code === 'API_UNREACHABLE' || error.code === 'API_ANSWER') return true;
  const status = Number(error.context.status);
  return error.code === 'API_STATUS' && (status >= 500 || STATUSES.has(status));
}

/** Whether the server refused the page, so that asking for it again is pointless; of the error itself, not of its {@link PageFailure}. */
export function isPageRefused(error: unknown): boolean {
  return error instanceof CellarstreamError && REFUSALS.has(Number(error.context.status));
}

/** Failures in a row, and ms from the first to the newest, before a page is suspected. Too small: a short outage is taken for a bad page. */
const LEAST_FAILURES = 3;
const LEAST_MS = 5_000;

/**
 * How a page is asked for. `some`: a few times. `one`: once. `probe`: once too, as a page that other lanes read as well, so that a refusal
 * says something about the token.
 */
type PageTries = 'some' | 'one' | 'probe';

/** Counts the failures of one page, and says after each whether the page is given up, to be read in another way. */
export function pagePatience(scheduler: SchedulerLike, tries: PageTries): PagePatience {
  let failures = 0;
  let since: number | undefined;
  return {
    isOfPage: (error) => tries !== 'probe' && isPageRefused(error),
    isGivenUp: (error) => {
      if (!mayBeOfPage(error)) return false;
      failures += 1;
      since ??= scheduler.now();
      if (tries !== 'some') return tries === 'one' || !isPageRefused(error);
      return failures >= LEAST_FAILURES && scheduler.now() - since >= LEAST_MS;
    },
  };
}

export interface PageAttemptsOptions {
  /** Asks for another page; errors with a {@link PageFailure} after its tries. */
  readonly ask: (query: ListQuery, tries: PageTries) => Observable<Answer>;
  readonly plan: PagePlan;
  readonly clock: LogicalClock;
}

export type PageQuery = ListQuery & PagePlace;

/**
 * The requests by which one failed page is read in another way, and the reads that they open: `settle` closes all of them but the one
 * whose answer was handed over.
 */
export class PageAttempts {
  readonly query: PageQuery;
  /** The error of the failed page. */
  readonly error: unknown;
  readonly #options: PageAttemptsOptions;
  /** The read that a joined answer has; it begins before those of its parts. */
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

  /** Whether the page is one of a window of dates. */
  get isDated(): boolean {
    return this.query.modifiedFromDate !== undefined;
  }

  /** Another page of the same list; errors with a {@link PageFailure} if it fails. */
  ask(part: PagePlace, tries: PageTries = 'one'): Observable<Answer> {
    return this.#options
      .ask({ ...this.query, ...part }, tries)
      .pipe(tap((answer) => this.#unsettled.set(answer.span.begin, answer)));
  }

  /**
   * Another page of the same list; undefined if it fails. When the server is first seen to move pages, errors with `tryAgain`: the failed
   * page is then tried again in whole pages.
   *
   * A `probe` that fails in a way that can pass errors with its own error if the failed page was refused: the refusal alone would be final,
   * but the API may be away, or the token dead.
   */
  attempt(part: PagePlace, tries: PageTries = 'one'): Observable<Answer | undefined> {
    const { plan } = this.#options;
    return this.ask(part, tries).pipe(
      tap((answer) => {
        if (plan.isWhole || !isElsewhere(answer, part)) return;
        plan.foundWhole();
        throw this.#retryable;
      }),
      catchError((failure: unknown) => {
        if (!(failure instanceof PageFailure)) return throwError(() => failure);
        const isUndecided = isRetryableAtApi(failure.error) && !isRetryableAtApi(this.error);
        if (tries === 'probe' && isUndecided) return throwError(() => failure.error);
        return of(undefined);
      }),
    );
  }

  /** A page of one record outside of the failed page; undefined if the API fails there as well. */
  probe(): Observable<Answer | undefined> {
    return this.attempt({ offset: this.#oddOffsets[0], pageSize: 1 }, 'probe');
  }

  /**
   * Whether the server begins a page of two records at an odd offset; true where no records there show it.
   *
   * @param probed The answer to {@link probe}.
   */
  beginsWhereAsked(probed: Answer): Observable<boolean> {
    const look = (
      [at, next, ...rest]: readonly number[],
      single: Answer | undefined,
    ): Observable<boolean> => {
      const elsewhere = () =>
        next === undefined
          ? of(true)
          : this.attempt({ offset: next, pageSize: 1 }).pipe(
              switchMap((answer) => look([next, ...rest], answer)),
            );
      const record = single?.data[0];
      if (!record) return elsewhere();
      const place = { offset: at!, pageSize: 2 };
      return this.ask(place).pipe(
        map((answer) => !isElsewhere(answer, place) && answer.data[0]?.key === record.key),
        catchError((failure: unknown) => {
          if (!(failure instanceof PageFailure)) return throwError(() => failure);
          return isPageRefused(failure.error) ? of(false) : elsewhere();
        }),
      );
    };
    return look(this.#oddOffsets, probed);
  }

  /** Odd offsets, at which a server that rounds offsets begins no page. The first one is outside of the failed page. */
  get #oddOffsets(): readonly [number, ...number[]] {
    const { offset, pageSize } = this.query;
    return offset > 0 ? [1, 5] : [pageSize | 1, 1, 5];
  }

  /** Gives up: errors as the failed page did, which is final if it was refused. */
  failed(): Observable<never> {
    return throwError(() => this.error);
  }

  /** Gives up for now: errors with the page's error marked as retryable, as other answers suggest that what failed has passed. */
  tryAgain(): Observable<never> {
    return throwError(() => this.#retryable);
  }

  /** Whether an error comes from `failed` or `tryAgain`. */
  isGivenUp(error: unknown): boolean {
    return error === this.error || error === this.#retryable;
  }

  /** One answer of the parts before and after a gap, as old as its oldest part. */
  joined(before: readonly Answer[], gap: readonly PageRecord[], after: readonly Answer[]): Answer {
    const data = [...recordsIn(before), ...gap, ...recordsIn(after)];
    const { pagination } = after.at(-1)!;
    return { ...this.#join(before, after), data, pagination, hasGap: true };
  }

  /** The records in front of an offset from which on the API serves nothing; `other` is a page elsewhere. */
  cutOff(before: readonly Answer[], other: Answer): Answer {
    const pagination = { ...other.pagination, has_next_page: false };
    return { ...this.#join(before, [other]), data: recordsIn(before), pagination, isCut: true };
  }

  /** The read of a joined answer, and when it was answered: as the first part behind, and as old as the oldest of all. */
  #join(before: readonly Answer[], after: readonly Answer[]) {
    this.#isJoined = true;
    const { serverTime, elapsedMs = 0 } = after[0]!;
    const age = oldestOf([...before, ...after].map((part) => part.age));
    const span = this.#options.clock.answered(this.#begin);
    return { span, serverTime, elapsedMs, age };
  }

  /** From now on the reader of this answer settles its read. */
  handOver({ span }: Answer): void {
    this.#unsettled.delete(span.begin);
  }

  /** Settles the reads of the other answers. */
  settle(): void {
    const { clock } = this.#options;
    for (const answer of this.#unsettled.values()) {
      clock.settle(answer.span.begin);
      if (!this.#isJoined) answer.records?.settle(); // a joined answer still reads the bodies of its parts
    }
    if (!this.#isJoined) clock.settle(this.#begin);
  }
}

function asRetryable(error: unknown): unknown {
  if (isRetryableAtApi(error) || !(error instanceof CellarstreamError)) return error;
  const { code, message, context } = error;
  return new CellarstreamError(code, message, {
    context: { ...context, canPass: true },
    cause: error,
  });
}

/** Whether the server says that a page begins elsewhere than asked. */
function isElsewhere({ data, reported }: Answer, { offset }: Pick<PagePlace, 'offset'>): boolean {
  return data.length > 0 && reported?.offset !== undefined && reported.offset !== offset;
}

/** The records of several answers, in their order. */
export function recordsIn(answers: readonly Answer[]): readonly PageRecord[] {
  return answers.flatMap(({ data }) => data);
}
