import { concatMap, every, from, map, of, switchMap, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PagePlan } from '../http/page-plan.ts';
import type { Answer } from './answer.ts';
import { isPageRefused } from './page-attempts.ts';
import type { PageAttempts } from './page-attempts.ts';

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
 *
 * @returns Reads a page up to that offset, given the answers that show the page up to an offset. Each way emits undefined if there is
 * no such offset.
 */
export function offsetLimit(plan: PagePlan, scheduler: SchedulerLike) {
  let since: number | undefined;
  /** Whether failures of everything behind an offset are a limit by now: at once where no repetition changes a refusal. */
  const isLasting = (error: unknown): boolean => {
    since ??= scheduler.now();
    return isPageRefused(error) || scheduler.now() - since >= PATIENCE_MS;
  };

  return (attempts: PageAttempts, front: (end: number) => Observable<readonly Answer[]>) => {
    const { offset, pageSize } = attempts.query;

    /** Looks at an offset whose record failed, beside a page elsewhere that has come. */
    const beside = (other: Answer, at: number, isKnown = false): Observable<Answer | undefined> => {
      if (at === 0) return of(undefined);
      return isLimit(attempts, at, other.pagination.total_records).pipe(
        switchMap((isFound) => {
          if (!isFound) return of(undefined);
          if (!isKnown && !isLasting(attempts.error)) return attempts.tryAgain();
          // The page elsewhere once more: the API or the token may have failed since then.
          return attempts.probe().pipe(
            switchMap((again) => (again ? front(at) : attempts.failed())),
            map((before) => {
              plan.limitFound(at);
              return attempts.cutOff(before, other);
            }),
          );
        }),
      );
    };
    /** The same once a page elsewhere has come. Errors as the page did if the API is away. */
    const at = (place: number, isKnown = false): Observable<Answer | undefined> =>
      attempts
        .probe()
        .pipe(switchMap((other) => (other ? beside(other, place, isKnown) : attempts.failed())));
    /** Looks at the offset that the plan remembers, if it lies in the page. */
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
  };
}

/**
 * Asks for single records: at an offset, and at some places behind it up to the list's end. Emits whether all of them fail.
 *
 * @param total `total_records`. Default: the server tells none.
 */
function isLimit(attempts: PageAttempts, at: number, total = Infinity): Observable<boolean> {
  const last = total === Infinity ? at + 2 * attempts.query.pageSize : total - 1;
  const behind = [at + APART, Math.floor((at + last) / 2), last];
  const places = [...new Set([at, ...behind])].filter((each) => each >= at && each < total);
  if (places.length < 2) return of(false); // a bad record at the very end looks the same
  return from(places).pipe(
    concatMap((offset) => attempts.attempt({ offset, pageSize: 1 })),
    every((answer) => answer === undefined),
  );
}
