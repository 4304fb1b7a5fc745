import { asyncScheduler, concatMap, map, Observable } from 'rxjs';
import type { SchedulerLike, Subscription } from 'rxjs';

/** The limit a {@link tokenBucket} keeps. Read once, when the bucket is made. */
export interface TokenBucketOptions {
  /** Most starts in one window: an integer, at least 1. */
  readonly capacity: number;
  /** Length of the window, in milliseconds; more than 0. */
  readonly windowMs: number;
  /** Clock (ms) and timers. Default {@link asyncScheduler}: whole ms, and NTP can step it. */
  readonly scheduler?: SchedulerLike;
}

/** Holds a stream to the quota. One value serves pipes of any type. */
export type TokenBucket = <T>(source: Observable<T>) => Observable<T>;

/**
 * Delays values so that at most `capacity` of them start within ANY `windowMs`.
 *
 * A token comes back `windowMs` after it was taken, not at a steady trickle: a bucket that also
 * refills while it drains lets nearly `2 * capacity` through. With `s(k)` the k-th start, the
 * promise is `s(k + capacity) - s(k) >= windowMs`; a window is half-open, `[t, t + windowMs)`.
 *
 * Make one bucket per quota and share it. Every pipe through it, and every resubscription
 * (`retry`!), draws on the same tokens, first come first served. Values keep their order within
 * a pipe; an error of the source overtakes the values still waiting.
 *
 * The promise holds to the tick of the scheduler's clock. A server counts arrivals: leave headroom.
 *
 * @throws RangeError when called, if `capacity` or `windowMs` is out of range.
 * @see https://github.com/tower-rs/tower/issues/842 - why a fixed window is not enough
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucket {
  const { capacity, windowMs, scheduler = asyncScheduler } = options;
  if (!Number.isInteger(capacity) || capacity < 1) {
    throw new RangeError(`capacity must be an integer >= 1, got ${capacity}`);
  }
  if (!Number.isFinite(windowMs) || windowMs <= 0) {
    throw new RangeError(`windowMs must be a finite number > 0, got ${windowMs}`);
  }

  const starts: number[] = []; // times of the newest starts, oldest first; at most `capacity`
  const waiting: (() => void)[] = [];
  let wakeUp: Subscription | undefined;
  let draining = false;

  const drain = (): void => {
    wakeUp = undefined;
    draining = true; // a start may ask for the next token: it joins the line, this loop serves it
    while (waiting.length > 0 && !wakeUp) {
      const now = scheduler.now();
      const wait = starts.length < capacity ? 0 : starts[0]! + windowMs - now;
      if (wait > 0) {
        // Worked out again on waking: a timer can fire early (Node's do, by up to 1 ms).
        wakeUp = scheduler.schedule(drain, wait);
      } else {
        if (starts.length === capacity) starts.shift();
        starts.push(now);
        waiting.shift()!();
      }
    }
    draining = false;
  };

  const token = new Observable<void>((subscriber) => {
    const start = () => {
      subscriber.next();
      subscriber.complete();
    };
    waiting.push(start);
    if (!draining && !wakeUp) drain();
    return () => {
      const place = waiting.indexOf(start);
      if (place >= 0) waiting.splice(place, 1);
      if (waiting.length > 0) return;
      wakeUp?.unsubscribe();
      wakeUp = undefined;
    };
  });

  return (source) => source.pipe(concatMap((value) => token.pipe(map(() => value))));
}
