import { concatMap, every, from, map, of, switchMap, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PagePlan } from '../http/page-plan.ts';
import type { Answer } from './answer.ts';
import type { PageAttempts } from './page-attempts.ts';
import { isPageRefused, probe } from './page-attempts.ts';

/** Distance in records at which a second failure is not one of a few bad records in a row. Too small: bad records are taken for a limit. */
const APART = 11;
/**
 * How long failures that may pass (5xx, 404, no answer) last before they count as a limit, ms. Too small: the end of a list is left out
 * when one part of the API is away. Too large: an initial snapshot waits this long for records that never come.
 */
const PATIENCE_MS = 10 * 60_000;

/**
 * Decides whether the API serves no record from an offset on: search engines refuse offsets over 10,000 ("result window is too
 * large"), and databases time out far behind. One per page that is read; the caller has seen that pages elsewhere come.
 */
export class OffsetLimit {
  readonly #scheduler: SchedulerLike;
  #since: number | undefined;

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
  }

  /**
   * Asks for single records: at an offset, and at some places behind it up to the list's end. Emits whether all of them fail.
   *
   * @param total `total_records`. Default: the server tells none.
   */
  isAt(attempts: PageAttempts, at: number, total = Infinity): Observable<boolean> {
    const last = total === Infinity ? at + 2 * attempts.query.pageSize : total - 1;
    const behind = [at + APART, Math.floor((at + last) / 2), last];
    const places = [...new Set([at, ...behind])].filter((each) => each >= at && each < total);
    if (places.length < 2) return of(false); // a bad record at the very end looks the same
    return from(places).pipe(
      concatMap((offset) => attempts.attempt({ offset, pageSize: 1 })),
      every((answer) => answer === undefined),
    );
  }

  /**
   * Whether failures of everything behind an offset are a limit by now.
   *
   * @param isRefusal Whether the API refuses the page in a way that no repetition changes.
   */
  isLasting(isRefusal: boolean): boolean {
    this.#since ??= this.#scheduler.now();
    return isRefusal || this.#scheduler.now() - this.#since >= PATIENCE_MS;
  }
}

/** Reads one page up to the offset from which on the API serves nothing; each emits undefined if there is no such offset. */
interface UpToLimit {
  /** Looks at an offset whose record failed, once a page elsewhere has come. Errors as the page did if the API is away. */
  readonly at: (offset: number) => Observable<Answer | undefined>;
  /** The same with a page elsewhere that has come already. */
  readonly beside: (other: Answer, offset: number) => Observable<Answer | undefined>;
  /** Looks at the offset that the plan remembers, if it lies in the page. */
  readonly known: () => Observable<Answer | undefined>;
}

/** @param front The answers that show the page up to an offset. */
export function upToLimit(
  attempts: PageAttempts,
  plan: PagePlan,
  limit: OffsetLimit,
  front: (end: number) => Observable<readonly Answer[]>,
): UpToLimit {
  const { offset, pageSize } = attempts.query;

  const beside = (other: Answer, at: number, isKnown = false): Observable<Answer | undefined> => {
    if (at === 0) return of(undefined);
    return limit.isAt(attempts, at, other.pagination.total_records).pipe(
      switchMap((isLimit) => {
        if (!isLimit) return of(undefined);
        if (!isKnown && !limit.isLasting(isPageRefused(attempts.error))) return attempts.tryAgain();
        // The page elsewhere once more: the API or the token may have failed since then.
        return probe(attempts).pipe(
          switchMap((again) => (again ? front(at) : attempts.failed())),
          map((before) => {
            plan.limitFound(at);
            return attempts.cutOff(before, other);
          }),
        );
      }),
    );
  };
  const at = (place: number, isKnown = false): Observable<Answer | undefined> =>
    probe(attempts).pipe(
      switchMap((other) => (other ? beside(other, place, isKnown) : attempts.failed())),
    );
  const known = (): Observable<Answer | undefined> => {
    const place = Math.max(offset, plan.servedTo);
    if (place >= offset + pageSize) return of(undefined);
    return at(place, true).pipe(
      tap((answer) => {
        if (!answer) plan.limitFound(Infinity);
      }),
    );
  };
  return { at, beside, known };
}
