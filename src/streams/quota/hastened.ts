import { concat, concatMap, defer, map, of, Subject, switchMap, take, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import { during } from './token-bucket.ts';
import type { Limit } from './token-bucket.ts';

/** Two limits in the place of one. */
export interface HastenedOptions {
  readonly usual: Limit;
  /** Where there is haste. */
  readonly hurried: Limit;
  /** Emits when there is haste: at once, where there is already. */
  readonly haste$: Observable<unknown>;
}

/**
 * The `usual` limit, and where there is haste the `hurried` one. A start that waits when haste begins goes over to the other
 * line; one that is under way stays where it began.
 */
export function hastened({ usual, hurried, haste$ }: HastenedOptions): Limit {
  const held = <T>(work: Observable<T>): Observable<T> =>
    defer(() => {
      const begun$ = new Subject<void>();
      const begun = defer(() => {
        begun$.next();
        return work;
      });
      const faster$ = haste$.pipe(
        take(1),
        map(() => hurried),
      );
      return concat(of(usual), faster$).pipe(
        takeUntil(begun$),
        switchMap((limit) => during(limit, begun)),
      );
    });
  const each = <T>(source: Observable<T>) => source.pipe(concatMap((value) => held(of(value))));
  return Object.assign(each, { during: held });
}
