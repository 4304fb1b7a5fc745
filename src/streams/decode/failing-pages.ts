import { defer, finalize, map, of, switchMap, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { Answer } from './answer.ts';
import { aroundFailing } from './around-failing.ts';
import type { FailingPlaces } from './around-failing.ts';
import { offsetLimit } from './offset-limit.ts';
import { PageAttempts } from './page-attempts.ts';
import type { PageAttemptsOptions, PageQuery } from './page-attempts.ts';

interface FailingPagesOptions extends PageAttemptsOptions {
  readonly places: FailingPlaces;
  readonly scheduler: SchedulerLike;
}

/**
 * Reads a page that failed again and again in another way: smaller, elsewhere, or around the record that makes it fail.
 *
 * A page of one record elsewhere is asked for first. If it fails too, the API is at fault and not the page, and the page's own error is
 * thrown: the caller tries again later. A page of two records there shows whether the server begins pages where they are asked for; if it
 * does not, only whole pages are asked for (see {@link PagePlan}). Then the page is split, and the part that fails is split again. If all
 * parts can be had, the page was too large: its first part is the answer, and the plan has the new size. If it comes down to one record,
 * that record is asked for, then the page behind it, the one before it, and the record again. If it failed both times it has not moved, and
 * the parts are one page with a gap: an unreadable record, whose text says after which key it stands. So a page takes some 20 requests
 * once, and three whenever it is read later (see {@link FailingPlaces}).
 *
 * If every record from some place on fails, the API serves the list up to there only (see {@link offsetLimit}): the answer has the page's
 * records in front of that place, and says that the list is cut. The plan remembers the place, which costs some eight requests when it is
 * met again.
 */
export function failingPages(
  options: FailingPagesOptions,
): (query: PageQuery, error: unknown) => Observable<Answer> {
  const { plan, places, scheduler } = options;
  const limit = offsetLimit(plan, scheduler);

  const narrowed = (query: PageQuery, error: unknown): Observable<Answer> =>
    defer(() => {
      const { offset, pageSize } = query;
      const attempts = new PageAttempts(options, query, error);
      const around = aroundFailing(attempts, plan, places);
      const limited = limit(attempts, around.front);

      const isAligned = () => !plan.isWhole || offset % pageSize === 0;
      /** The whole page that begins at the offset or before it. */
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
      /** Finds out why the page fails. `other` is a page elsewhere, which shows that the API answers. */
      const searched = (other: Answer): Observable<Answer> => {
        const { total_records: total } = other.pagination;
        if (offset > 0 && total !== undefined && total <= offset) return of(nothingBehind(other));
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
      /** The page once it has come down to one record that fails: up to it, where the API serves no more, or around it. */
      const alone = (at: number, front: Answer | undefined): Observable<Answer> =>
        attempts.attempt({ offset: at, pageSize: 1 }, 'some').pipe(
          switchMap((answer) => (answer ? of(front ?? answer) : limited.at(at))),
          switchMap((answer) => (answer ? of(answer) : around.at(at))),
        );
      /** Smaller pages; the first one ends where the list does. */
      const inParts = (total = Infinity): Observable<Answer> => {
        // Whole pages keep their size: a part of it has to be one as well.
        const size = plan.isWhole ? pageSize : Math.min(pageSize, Math.max(1, total - offset));
        const failing = { offset, pageSize: size };
        return (size < pageSize ? attempts.attempt(failing) : of(undefined)).pipe(
          switchMap((answer) => (answer ? of(answer) : splitPage(attempts, plan, failing, alone))),
        );
      };
      const search = (): Observable<Answer> => {
        places.forget(attempts.isDated, offset, pageSize);
        return attempts
          .probe()
          .pipe(switchMap((other) => (other ? searched(other) : attempts.failed())));
      };

      const answer$ = isAligned()
        ? around.known().pipe(
            switchMap((answer) => (answer ? of(answer) : limited.known())),
            switchMap((answer) => (answer ? of(answer) : search())),
          )
        : aligned();
      return answer$.pipe(
        tap((answer) => attempts.handOver(answer)),
        finalize(() => attempts.settle()),
      );
    });
  return narrowed;
}

/** The answer to a page that lies behind the end, where the server answers it with an error. */
function nothingBehind(other: Answer): Answer {
  const { span, serverTime, elapsedMs = 0, age, pagination } = other;
  other.records?.settle();
  return {
    ...{ span, serverTime, elapsedMs, age },
    data: [],
    pagination: { ...pagination, has_next_page: false },
  };
}

/**
 * Splits a page that fails, and the part of it that fails, until all parts can be had or one record is left. In the first case the page
 * was too large: the plan gets the size of the parts, and the first part is the answer. In the second one the record makes every page
 * fail, unless it can be had alone.
 *
 * @param alone Reads the page once it has come down to one record; with the answer to the first part of the page, once there is one.
 */
function splitPage(
  attempts: PageAttempts,
  plan: PagePlan,
  failing: PagePlace,
  alone: (at: number, front: Answer | undefined) => Observable<Answer>,
): Observable<Answer> {
  /** @param good Size of the largest part that was answered. */
  const split = (page: PagePlace, front: Answer | undefined, good: number): Observable<Answer> => {
    const parts = plan.split(page);
    if (parts.length === 0) return alone(page.offset, front);
    const one = (nth: number, before: Answer | undefined, largest: number): Observable<Answer> => {
      const part = parts[nth]!;
      const isLast = nth === parts.length - 1;
      // A page as large as this one was fine: its size is not what makes it fail.
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
