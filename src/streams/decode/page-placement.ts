import { catchError, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Answer } from './answer.ts';
import { isElsewhere } from './page-attempts.ts';
import type { PageAttempts, PageQuery } from './page-attempts.ts';
import { isPageRefused, PageFailure } from './page-failure.ts';

/** Odd offsets, at which a server that rounds offsets begins no page. The first one is outside of the failed page. */
function oddOffsets({ offset, pageSize }: PageQuery): readonly [number, ...number[]] {
  return offset > 0 ? [1, 5] : [pageSize | 1, 1, 5];
}

/** A page of one record outside of the failed page; undefined if the API fails there as well. */
export function probe(attempts: PageAttempts): Observable<Answer | undefined> {
  return attempts.attempt({ offset: oddOffsets(attempts.query)[0], pageSize: 1 }, 'probe');
}

/**
 * Whether the server begins a page of two records at an odd offset; true where no records there show it.
 *
 * @param probed The answer to {@link probe}.
 */
export function beginsWhereAsked(attempts: PageAttempts, probed: Answer): Observable<boolean> {
  const look = (
    at: number,
    others: readonly number[],
    single: Answer | undefined,
  ): Observable<boolean> => {
    const elsewhere = () => {
      const [next, ...rest] = others;
      if (next === undefined) return of(true);
      return attempts
        .attempt({ offset: next, pageSize: 1 })
        .pipe(switchMap((answer) => look(next, rest, answer)));
    };
    const record = single?.data[0];
    if (!record) return elsewhere();
    return attempts.ask({ offset: at, pageSize: 2 }).pipe(
      switchMap((answer) =>
        of(!isElsewhere(answer, { offset: at }) && answer.data[0]?.key === record.key),
      ),
      catchError((failure: unknown) => {
        if (!(failure instanceof PageFailure)) return throwError(() => failure);
        return isPageRefused(failure.error) ? of(false) : elsewhere();
      }),
    );
  };
  const [first, ...others] = oddOffsets(attempts.query);
  return look(first, others, probed);
}
