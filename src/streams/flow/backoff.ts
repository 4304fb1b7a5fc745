import { asyncScheduler, NEVER, retry, takeUntil, throwError, timer } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';

/** How long {@link backoff} pauses, and when it gives up. */
export interface BackoffOptions {
  /** Ceiling of the first pause, in milliseconds; it doubles from try to try. Default 250. */
  readonly firstMs?: number;
  /** Ceiling of every pause, in milliseconds. Default 30,000. */
  readonly maxMs?: number;
  /** Tries after the first before the error is let through. Default Infinity. */
  readonly retries?: number;
  /** Which errors can pass. Default those that {@link backoff} names. */
  readonly canPass?: (error: unknown) => boolean;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1). Default Math.random. */
  readonly random?: () => number;
  /** Told before each pause. */
  readonly onRetry?: (retry: Retry) => void;
  /** Ends a pause, and the stream with it. */
  readonly stop$?: Observable<unknown>;
}

/** A try that failed, and the pause before the next. */
export interface Retry {
  readonly error: unknown;
  /** 1 for the first try after a failure. */
  readonly count: number;
  readonly delayMs: number;
}

/** The server's own word on when to come back, in milliseconds, kept in an error's context. */
export const RETRY_AFTER = 'retryAfterMs';

/**
 * Subscribes again after an error that can pass, after a random part of a pause that doubles ("full
 * jitter": clients that failed together do not come back together), or after the pause that the server
 * asked for. A value starts the count afresh. Other errors go through at once.
 *
 * What can pass says `canPass`, by default errors of the network, as `fetch` and
 * undici throw them (an API that is not up yet, a connection that broke, a timeout), and of
 * `CellarstreamError` the codes that time can heal, as `QUOTA_EXCEEDED` (a 429 of the API); `API_STATUS` by the `status` in its
 * context: 5xx, 408, 409, 423, 425, 429. A 404 and any other status are final, and so is everything else: a bug, an address that
 * is none, a certificate that is not trusted. Tries are for ever unless `retries` says otherwise, and silent:
 * `onRetry` is told of each. (`login` and `listRequest` try 404 and redirects again too.)
 *
 * A first refused token is tried again without a pause: the next one may be ready.
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
      const ceiling = Math.min(maxMs, firstMs * 2 ** Math.min(count - 1, 30));
      const once = error instanceof CellarstreamError && error.code === 'TOKEN_REJECTED';
      const delayMs =
        typeof asked === 'number' ? asked : once && count === 1 ? 0 : random() * ceiling;
      onRetry?.({ error, count, delayMs });
      return timer(delayMs, scheduler).pipe(takeUntil(stop$));
    },
  });
}
