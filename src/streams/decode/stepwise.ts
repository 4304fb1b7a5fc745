import { defer, of, switchMap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';

/**
 * Does a work that stops now and then, with a turn of the event loop at each stop: other work need not
 * wait until all of it is done. Emits what it comes to, and completes; errors with what it throws. Each
 * stop goes one level deeper: for works of some hundreds of steps.
 */
export function stepwise<T>(
  work: () => Generator<void, T>,
  scheduler: SchedulerLike,
): Observable<T> {
  return defer(() => {
    const steps = work();
    const goOn = (): Observable<T> => {
      const { done, value } = steps.next();
      return done ? of(value) : timer(0, scheduler).pipe(switchMap(goOn));
    };
    return goOn();
  });
}
