import { from, Observable, Subject, takeUntil } from 'rxjs';
import type { ObservableInput } from 'rxjs';

/**
 * Runs `handle` for one value after the other, and emits the results. The next value is taken from the iterable when the observable of the
 * previous value has completed. Unlike with `concatMap`, many observables that complete synchronously do not overflow the stack.
 */
export function inTurn<T, R>(
  values: Iterable<T>,
  handle: (value: T) => ObservableInput<R>,
): Observable<R> {
  return new Observable((subscriber) => {
    const iterator = values[Symbol.iterator]();
    // Ends the running observable; a Subscription is not available yet while it emits synchronously.
    const over$ = new Subject<void>();
    let isBusy = false;

    const go = (): void => {
      while (!isBusy && !subscriber.closed) {
        let begun: Observable<R>;
        try {
          const step = iterator.next();
          if (step.done) return subscriber.complete();
          begun = from(handle(step.value));
        } catch (error) {
          return subscriber.error(error);
        }
        isBusy = true;
        let isAtOnce = true;
        begun.pipe(takeUntil(over$)).subscribe({
          next: (result) => subscriber.next(result),
          error: (error: unknown) => subscriber.error(error),
          complete: () => {
            isBusy = false;
            if (!isAtOnce) go();
          },
        });
        isAtOnce = false;
      }
    };
    subscriber.add(() => over$.next());
    go();
  });
}
