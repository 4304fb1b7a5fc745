import { catchError, defer, map, of, switchMap } from 'rxjs';
import type { Observable } from 'rxjs';

/**
 * Sequential work that waits for Observables, as an async function waits for promises. Unlike a promise, an Observable keeps to the
 * scheduler of its operators, can be cancelled, and may emit synchronously.
 */
export type Steps<T> = Generator<Observable<unknown>, T, unknown>;

/** Returns the value that an Observable emits, or throws its error. To be called with `yield*` in the work passed to {@link inSteps}. */
export function* waitFor<T>(source$: Observable<T>): Steps<T> {
  return (yield source$) as T;
}

/**
 * Creates an Observable that runs `work` on subscription. It emits the return value of `work`, or errors with what `work` throws. `work`
 * must not wait more than some hundred times, because each wait nests the subscriptions one level deeper.
 */
export function inSteps<T>(work: () => Steps<T>): Observable<T> {
  return defer(() => {
    const steps = work();
    const goOn = (resume: () => IteratorResult<Observable<unknown>, T>): Observable<T> => {
      const { done, value } = resume();
      if (done) return of(value);
      // If `value` completes without a value, so does the created Observable.
      return value.pipe(
        map((result) => () => steps.next(result)),
        catchError((error: unknown) => of(() => steps.throw(error))),
        switchMap(goOn),
      );
    };
    return goOn(() => steps.next());
  });
}
