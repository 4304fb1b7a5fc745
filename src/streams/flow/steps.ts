import { Observable } from 'rxjs';

/**
 * Sequential work that waits for Observables, as an async function waits for promises. Unlike a promise, an Observable keeps to the
 * scheduler of its operators, can be cancelled, and may emit synchronously.
 */
export type Steps<T> = Generator<Observable<unknown>, T, unknown>;

/** Returns the last value of an Observable, or throws its error. To be called with `yield*` in the work passed to {@link inSteps}. */
export function* waitFor<T>(source$: Observable<T>): Steps<T> {
  return (yield source$) as T;
}

/**
 * Creates an Observable that runs `work` on subscription. It emits the return value of `work`, or errors with what `work` throws. It
 * completes without a value if `work` waits for an Observable that completes without one. `work` may wait at most a few hundred times for
 * Observables that complete synchronously, because these waits are nested on the stack. When the subscriber unsubscribes, the `finally`
 * blocks of `work` are run; they must not wait.
 */
export function inSteps<T>(work: () => Steps<T>): Observable<T> {
  // Without operators: they would take three subscriptions for each wait, and nest them.
  return new Observable((subscriber) => {
    const steps = work();
    let isRunning = false;
    const end = (): void => {
      if (!isRunning) steps.return(undefined as T);
    };
    const goOn = (resume: () => IteratorResult<Observable<unknown>, T>): void => {
      let step: IteratorResult<Observable<unknown>, T>;
      isRunning = true;
      try {
        step = resume();
      } catch (error) {
        return subscriber.error(error);
      } finally {
        isRunning = false;
      }
      if (subscriber.closed) return end(); // unsubscribed by the work itself
      if (step.done) {
        subscriber.next(step.value);
        return subscriber.complete();
      }
      let last: { readonly value: unknown } | undefined;
      const waiting = step.value.subscribe({
        next: (value) => (last = { value }),
        error: (error: unknown) => goOn(() => steps.throw(error)),
        complete: () => {
          if (last === undefined) return subscriber.complete();
          const { value } = last;
          goOn(() => steps.next(value));
        },
      });
      subscriber.add(waiting);
    };
    subscriber.add(end);
    goOn(() => steps.next());
  });
}
