import { defer, finalize, map, of, switchMap, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { Answer } from './response.ts';
import { aroundFailing } from './around-failing.ts';
import type { FailingOffsets } from './around-failing.ts';
import { offsetLimit } from './offset-limit.ts';
import { PageAttempts } from './page-attempts.ts';
import type { PageAttemptsOptions, PageQuery } from './page-attempts.ts';

interface FailingPagesOptions extends PageAttemptsOptions {
  readonly failingOffsets: FailingOffsets;
  readonly scheduler: SchedulerLike;
}

/**
 * Creates the function that reads a page whose requests were given up: as a smaller page, at another offset, or in parts around the record
 * that makes it fail. It searches for the cause in these steps:
 *
 * - A page of one record elsewhere in the list is requested. If that fails too, the API is at fault and not the page: the page's own error
 *   is thrown.
 * - A page of two records elsewhere shows whether the server begins pages at the requested offsets. If not, only whole pages are requested
 *   (see {@link PagePlan}).
 * - The failing page is split, and the part of it that fails is split again. If all parts succeed, the page was too large: its first part
 *   is returned, and the plan gets the new size.
 * - If a single failing record remains, that record is requested, then the records after it, the records before it, and the failing record
 *   again. If it failed both times, it has not moved: the parts are returned as one page with an unreadable record in its place.
 *
 * These steps take some 20 requests the first time, and three whenever the page is read later (see {@link FailingOffsets}).
 *
 * If every record from some offset on fails, the API caps the list there (see {@link offsetLimit}): the response has the page's records in
 * front of that offset, and is marked with `isCut`. The plan remembers the offset. Whenever a page reaches it again, some eight requests
 * test whether the cap is still there.
 */
export function failingPages(
  options: FailingPagesOptions,
): (query: PageQuery, error: unknown) => Observable<Answer> {
  const { plan, failingOffsets, scheduler } = options;
  const limit = offsetLimit(plan, scheduler);

  const narrowed = (query: PageQuery, error: unknown): Observable<Answer> =>
    defer(() => {
      const { offset, pageSize } = query;
      const attempts = new PageAttempts(options, query, error);
      const around = aroundFailing(attempts, plan, failingOffsets);
      const limited = limit(attempts, around.front);

      const isAligned = () => !plan.isWhole || offset % pageSize === 0;
      /** Requests the whole page that contains `offset`: the one that begins at a list offset that is a multiple of its size. */
      const aligned = (): Observable<Answer> => {
        const place = plan.wholeAt(offset, pageSize);
        return attempts.attempt(place).pipe(
          switchMap((answer) => (answer ? of(answer) : narrowed({ ...query, ...place }, error))),
          map((answer) => {
            const begins = answer.offset ?? place.offset;
            return begins === offset ? answer : { ...answer, offset: begins };
          }),
        );
      };
      /**
       * Finds out why the request for the page failed, and emits what can be read of the page. `other` is the response to a page elsewhere
       * in the list, which has shown that the API is available.
       */
      const searched = (other: Answer): Observable<Answer> => {
        const { total } = other;
        if (offset > 0 && total !== undefined && total <= offset)
          return of(emptyResponseBehind(other));
        const isUnknown = pageSize > 1 && !plan.isWhole && !plan.isTrying;
        return (isUnknown ? attempts.beginsWhereAsked(other) : of(true)).pipe(
          switchMap((isPlaced) => {
            if (!isPlaced) plan.foundWhole();
            return isAligned() ? attempts.attempt({ offset, pageSize }) : of(undefined);
          }),
          switchMap((found) => {
            if (found) return of(found);
            if (!isAligned()) return aligned();
            return limited
              .beside(other, offset)
              .pipe(switchMap((answer) => (answer ? of(answer) : inParts(total))));
          }),
        );
      };
      /**
       * Emits what can be read of the page once the search has found its single failing record, at list offset `at`:
       *
       * - `front`, if the record can be read now; the record alone if there is no `front`;
       * - the records in front of `at`, if the API serves none from there on (a cap);
       * - otherwise the page with a gap in place of the record.
       *
       * @param front Response with the page's records before `at`; undefined if the failing record is the first of the page.
       */
      const alone = (at: number, front: Answer | undefined): Observable<Answer> =>
        attempts.attempt({ offset: at, pageSize: 1 }, 'some').pipe(
          switchMap((answer) => (answer ? of(front ?? answer) : limited.at(at))),
          switchMap((answer) => (answer ? of(answer) : around.at(at))),
        );
      const inParts = (total = Infinity): Observable<Answer> => {
        // A whole page is not shortened: its parts have to be whole pages as well.
        const size = plan.isWhole ? pageSize : Math.min(pageSize, Math.max(1, total - offset));
        const failing = { offset, pageSize: size };
        return (size < pageSize ? attempts.attempt(failing) : of(undefined)).pipe(
          switchMap((answer) => (answer ? of(answer) : splitPage(attempts, plan, failing, alone))),
        );
      };
      const search = (): Observable<Answer> => {
        failingOffsets.forget(attempts.isDated, offset, pageSize);
        return attempts
          .probe()
          .pipe(switchMap((other) => (other ? searched(other) : attempts.giveUp())));
      };

      const answer$ = isAligned()
        ? around.known().pipe(
            switchMap((answer) => (answer ? of(answer) : limited.known())),
            switchMap((answer) => (answer ? of(answer) : search())),
          )
        : aligned();
      return answer$.pipe(
        tap((answer) => attempts.transferSettlement(answer)),
        finalize(() => attempts.settle()),
      );
    });
  return narrowed;
}

/** Returns the response for a page beyond the end of the list: no records, and the total of `other`, a page elsewhere in the list. */
function emptyResponseBehind(other: Answer): Answer {
  const { span, serverTime, elapsedMs = 0, age, total } = other;
  other.records?.settle();
  return {
    ...{ span, serverTime, elapsedMs, age },
    data: [],
    total,
    hasNext: false,
  };
}

/**
 * Splits a failing page, then the part of it that fails, and so on:
 *
 * - If all parts of a page succeed, the page was too large: emits the response to the first part, and `plan` requests smaller pages from
 *   then on.
 * - If a single failing record is left, emits what `alone` emits.
 *
 * @param alone Reads the page in parts around the failing record, at list offset `at`. `front` is the response to the first part of the
 * page; undefined if the failing record is the first of the page.
 */
function splitPage(
  attempts: PageAttempts,
  plan: PagePlan,
  failing: PagePlace,
  alone: (at: number, front: Answer | undefined) => Observable<Answer>,
): Observable<Answer> {
  const split = (page: PagePlace, front: Answer | undefined, good: number): Observable<Answer> => {
    const parts = plan.split(page);
    if (parts.length === 0) return alone(page.offset, front);
    const one = (nth: number, before: Answer | undefined, largest: number): Observable<Answer> => {
      const part = parts[nth]!;
      const isLast = nth === parts.length - 1;
      // A page of this size succeeded, so this one does not fail because of its size, and its last part must fail.
      if (isLast && largest >= page.pageSize) return split(part, before, largest);
      return attempts.attempt(part).pipe(
        switchMap((answer) => {
          if (!answer) return split(part, before, largest);
          const first = before ?? answer;
          const size = Math.max(largest, part.pageSize);
          if (!isLast) return one(nth + 1, first, size);
          plan.tooLarge(size, failing.pageSize);
          return of(first);
        }),
      );
    };
    return one(0, front, good);
  };
  return split(failing, undefined, 0);
}
