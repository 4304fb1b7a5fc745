import { concatMap, every, from, map, of, switchMap, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PagePlan } from '../http/page-plan.ts';
import type { Answer } from './response.ts';
import { isPageRefused } from './page-attempts.ts';
import type { PageAttempts } from './page-attempts.ts';

/**
 * Distance, in records, between a failing record and a second one that is tested for a cap (an offset beyond which the API serves no
 * records). Too small: a few bad records in a row are taken for a cap.
 */
const APART = 11;
/**
 * How long transient failures (5xx, 404, no response) of all records from an offset on must last before they count as a cap, in ms. Too
 * small: the end of a list is left out when a part of the API is unavailable. Too large: an initial snapshot waits this long for records
 * that are never served.
 */
const LIMIT_AFTER_MS = 10 * 60_000;

/**
 * Creates the functions that decide whether the API caps a list at an offset, from which on it serves no record: search engines refuse
 * offsets over 10,000 ("result window is too large"), and databases time out on large ones.
 *
 * @returns A function for one failed page; `front` requests the page's records up to an offset. Each of the functions that it returns emits
 * the records in front of the cap, or undefined if there is no cap.
 */
export function offsetLimit(plan: PagePlan, scheduler: SchedulerLike) {
  let since: number | undefined;
  /**
   * Whether it counts as a cap that every request from some offset on fails: at once if the page was refused, otherwise after {@link
   * LIMIT_AFTER_MS}.
   */
  const isLasting = (error: unknown): boolean => {
    since ??= scheduler.now();
    return isPageRefused(error) || scheduler.now() - since >= LIMIT_AFTER_MS;
  };

  return (attempts: PageAttempts, front: (end: number) => Observable<readonly Answer[]>) => {
    const { offset, pageSize } = attempts.query;

    /** Tests for a cap at an offset whose record failed, given a page elsewhere (`other`) that succeeded. */
    const beside = (other: Answer, at: number, isKnown = false): Observable<Answer | undefined> => {
      if (at === 0) return of(undefined);
      return isLimit(attempts, at, other.pagination.total_records).pipe(
        switchMap((isFound) => {
          if (!isFound) return of(undefined);
          if (!isKnown && !isLasting(attempts.error)) return attempts.retryLater();
          // Requests the page elsewhere once more: the API or the token may have failed since then.
          return attempts.probe().pipe(
            switchMap((again) => (again ? front(at) : attempts.giveUp())),
            map((before) => {
              plan.limitFound(at);
              return attempts.cutResponse(before, other);
            }),
          );
        }),
      );
    };
    /** Requests a page elsewhere, then tests for a cap. Errors with the error of the failed page if the API is unavailable. */
    const at = (place: number, isKnown = false): Observable<Answer | undefined> =>
      attempts
        .probe()
        .pipe(switchMap((other) => (other ? beside(other, place, isKnown) : attempts.giveUp())));
    /** Tests for a cap at the offset that the plan remembers, if that lies in the page. */
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
 * Requests single records: at an offset, and at three offsets after it up to the end of the list. Emits whether all of them fail.
 *
 * @param total `total_records`. Default: the server sends none.
 */
function isLimit(attempts: PageAttempts, at: number, total = Infinity): Observable<boolean> {
  const last = total === Infinity ? at + 2 * attempts.query.pageSize : total - 1;
  const behind = [at + APART, Math.floor((at + last) / 2), last];
  const places = [...new Set([at, ...behind])].filter((each) => each >= at && each < total);
  if (places.length < 2) return of(false); // at the end of the list, a cap cannot be distinguished from a bad record
  return from(places).pipe(
    concatMap((offset) => attempts.attempt({ offset, pageSize: 1 })),
    every((answer) => answer === undefined),
  );
}
