import { catchError, of, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { oldestOf } from '../http/answer-age.ts';
import type { ListQuery } from '../http/list-query.ts';
import type { LogicalClock } from '../http/logical-clock.ts';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { PageRecord } from '../records/page-record.ts';
import type { Answer } from './answer.ts';
import { PageFailure } from './page-failure.ts';
import type { PageTries } from './page-failure.ts';

export interface PageAttemptsOptions {
  /** Asks for another page; errors with a {@link PageFailure} after its tries. */
  readonly ask: (query: ListQuery, tries: PageTries) => Observable<Answer>;
  readonly plan: PagePlan;
  readonly clock: LogicalClock;
}

/** The query of a page. */
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
   * Another page of the same list; undefined if it fails. When the server is first seen to move pages, errors with `tryAgain`:
   * the failed page is then tried again in whole pages.
   *
   * A `probe` that fails in a way that can pass errors with its own error if the failed page was refused: the refusal alone would be final, but the API may
   * be away, or the token dead.
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
export function isElsewhere(
  { data, reported }: Answer,
  { offset }: Pick<PagePlace, 'offset'>,
): boolean {
  return data.length > 0 && reported?.offset !== undefined && reported.offset !== offset;
}

/** The records of several answers, in their order. */
export function recordsIn(answers: readonly Answer[]): readonly PageRecord[] {
  return answers.flatMap(({ data }) => data);
}
