import { asyncScheduler, NEVER, retry, takeUntil, throwError, timer } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { pauseMs } from '../../core/retries.ts';

/** Options of {@link backoff}: lengths of the pauses, and when to give up. */
export interface BackoffOptions {
  /** Upper bound of the first pause, in ms. The bound doubles with each further attempt. Default 250. */
  readonly firstMs?: number;
  /** Upper bound of all random pauses, in ms. Default 30,000. */
  readonly maxMs?: number;
  /** Maximum number of consecutive retries. If the stream fails again after them, the error is emitted. Default Infinity. */
  readonly retries?: number;
  /** Whether an error is retryable. Default `isRetryable`. */
  readonly canPass?: (error: unknown) => boolean;
  /** Provides the clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Returns a random number in [0, 1), for the jitter of pauses. Default Math.random. */
  readonly random?: (() => number) | undefined;
  /** Called after each failed attempt that is retried, before the pause that precedes the retry. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Ends the current pause when it emits. The stream then completes without a further retry. */
  readonly stop$?: Observable<unknown>;
}

/** A failed attempt, and the pause before the next one. */
export interface Retry {
  readonly error: unknown;
  /** Number of failed attempts since the stream last emitted a value, including this attempt. */
  readonly count: number;
  /** Length of the pause before the next attempt, in ms. */
  readonly delayMs: number;
}

/** Name of the property in an error's `context` that contains the pause requested by the server, in ms. */
export const RETRY_AFTER = 'retryAfterMs';

/**
 * Creates an operator that retries a stream after a retryable error: it resubscribes after a pause. Other errors are emitted at once. The
 * number of retries is unlimited unless `retries` is set.
 *
 * The pause is the one that the server requested, if any. Otherwise it is a random fraction of an upper bound ("full jitter"). The bound
 * begins at `firstMs` and doubles with each attempt, up to `maxMs`. It begins again once the stream emits a value. The first retry after a
 * refused token (`TOKEN_REJECTED`) has no pause, unless the error requests one.
 *
 * `canPass` decides which errors are retryable. By default these are:
 *
 * - network errors as `fetch` and undici throw them (connection refused or reset, timeouts);
 * - `CellarstreamError`s with a temporary code such as `QUOTA_EXCEEDED` (a 429 of the API);
 * - `API_STATUS` with a `status` of 5xx, 408, 409, 423, 425 or 429 in its context.
 */
export function backoff<T>(options: BackoffOptions = {}): MonoTypeOperatorFunction<T> {
  const { firstMs = 250, maxMs = 30_000, retries = Infinity } = options;
  const { scheduler = asyncScheduler, random = Math.random, onRetry, stop$ = NEVER } = options;
  const { canPass = isRetryable } = options;

  return retry<T>({
    resetOnSuccess: true,
    delay: (error: unknown, count) => {
      if (!canPass(error) || count > retries) return throwError(() => error);
      const asked = error instanceof CellarstreamError ? error.context[RETRY_AFTER] : undefined;
      const ceiling = pauseMs({ firstMs, maxMs }, count);
      const once = error instanceof CellarstreamError && error.code === 'TOKEN_REJECTED';
      const delayMs =
        typeof asked === 'number' ? asked : once && count === 1 ? 0 : random() * ceiling;
      onRetry?.({ error, count, delayMs });
      return timer(delayMs, scheduler).pipe(takeUntil(stop$));
    },
  });
}
