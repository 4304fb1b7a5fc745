import { of, switchMap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { Answer } from './answer.ts';
import type { PageAttempts } from './page-attempts.ts';

/** Options of {@link splitPage}. */
export interface PageSplitOptions {
  readonly attempts: PageAttempts;
  readonly plan: PagePlan;
  /** Reads the failed page up to an offset, if the API serves nothing from there on. */
  readonly upToLimit: (at: number) => Observable<Answer | undefined>;
  /** Reads the failed page around the one record that makes it fail. */
  readonly around: (at: number) => Observable<Answer>;
}

/**
 * Splits a page that fails, and the part of it that fails, until all parts can be had or one record is left. In the first case the page
 * was too large: the plan gets the size of the parts, and the first part is the answer. In the second one the record makes every page
 * fail, unless it can be had alone.
 */
export function splitPage(options: PageSplitOptions, failing: PagePlace): Observable<Answer> {
  const { attempts, plan, upToLimit, around } = options;

  /**
   * @param front The answer to the first part of the failed page, once there is one.
   * @param good Size of the largest part that was answered.
   */
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
  const alone = (at: number, front: Answer | undefined): Observable<Answer> =>
    attempts.attempt({ offset: at, pageSize: 1 }, 'some').pipe(
      switchMap((answer) => (answer ? of(front ?? answer) : upToLimit(at))),
      switchMap((answer) => (answer ? of(answer) : around(at))),
    );

  return split(failing, undefined, 0);
}
