import { from, Observable, Subject, takeUntil } from 'rxjs';
import type { ObservableInput } from 'rxjs';

/**
 * What `handle` gives for each value, one after the other: the next value is taken when what came of
 * the one before has completed. Emits what that emits.
 *
 * As `concatMap`, but it takes values only when it is their turn, and any number in a row may complete
 * at once: `concatMap` begins what it has queued from within the end of the one before, and fills the
 * stack.
 */
export function inTurn<T, R>(
  values: Iterable<T>,
  handle: (value: T) => ObservableInput<R>,
): Observable<R> {
  return new Observable((subscriber) => {
    const iterator = values[Symbol.iterator]();
    // Not by a subscription: there is none yet while what is begun emits at once.
    const over$ = new Subject<void>();
    let isBusy = false;

    const begin = (): Observable<R> | undefined => {
      const step = iterator.next();
      return step.done ? undefined : from(handle(step.value));
    };
    const go = (): void => {
      while (!isBusy && !subscriber.closed) {
        let begun: Observable<R> | undefined;
        try {
          begun = begin();
        } catch (error) {
          return subscriber.error(error);
        }
        if (!begun) return subscriber.complete();
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
