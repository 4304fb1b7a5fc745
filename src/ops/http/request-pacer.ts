// Bounds what clients can cost the service, however often they send requests: a rate limit, and a cache of computed responses.

import { firstValueFrom, of, ReplaySubject, takeUntil } from 'rxjs';
import { steadyScheduler } from '../../core/clock.ts';
import { tokenBucket } from '../../streams/quota/token-bucket.ts';

/**
 * Share of the rate limit for HTTP requests that is reserved for health probes (0 to 1), so that a flood of other requests does not delay
 * them.
 */
const PROBE_SHARE = 0.2;

/**
 * Limits HTTP requests to `perSecond` in any second; health probes are served first. Up to `most` probes and as many other requests wait;
 * further ones are turned away.
 */
export function requestPacer(perSecond: number, most: number) {
  const all = tokenBucket({ capacity: perSecond, windowMs: 1_000, scheduler: steadyScheduler });
  const share = Math.max(1, Math.floor(perSecond * (1 - PROBE_SHARE)));
  const limits = { probe: all, other: all.lane({ rank: 1, share }) };
  const waiting = { probe: 0, other: 0 };
  const closed$ = new ReplaySubject<void>(1);
  return {
    /**
     * Waits until a request may be served, then resolves with true. Resolves with false at once when too many requests wait already, and on
     * `close`.
     */
    turn: async (who: 'probe' | 'other'): Promise<boolean> => {
      if (waiting[who] >= most) return false;
      waiting[who] += 1;
      try {
        const turn$ = of(true).pipe<boolean, boolean>(limits[who], takeUntil(closed$));
        return await firstValueFrom(turn$, { defaultValue: false });
      } finally {
        waiting[who] -= 1;
      }
    },
    /** Turns away all requests that wait, and all later ones. */
    close: () => closed$.next(),
  };
}

/**
 * Wraps `work` with a cache of its results: for each key it runs at most once in `everyMs` milliseconds. At most `most` results are cached
 * at a time; for further keys `work` runs on every call.
 */
export function atMostOncePer<T>(
  everyMs: number,
  most: number,
  work: (key: string) => T,
): (key: string) => T {
  const cached = new Map<string, T>();
  return (key) => {
    if (cached.has(key)) return cached.get(key)!;
    const result = work(key);
    if (cached.size < most) {
      cached.set(key, result);
      setTimeout(() => cached.delete(key), everyMs).unref();
    }
    return result;
  };
}
