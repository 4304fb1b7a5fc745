// Limits of what clients can cost the service, however often they ask: turns a second, and answers that are worked out once in a while.

import { firstValueFrom, of, ReplaySubject, takeUntil } from 'rxjs';
import { steadyScheduler } from '../../core/clock.ts';
import { tokenBucket } from '../../streams/quota/token-bucket.ts';

/** What all others leave to probes: who asks whether the process is alive must not wait for who floods it. */
const PROBES_PART = 0.2;

/** At most `perSecond` turns in any second, probes first; who comes while `most` of the kind wait gets none. */
export function pace(perSecond: number, most: number) {
  const all = tokenBucket({ capacity: perSecond, windowMs: 1_000, scheduler: steadyScheduler });
  const share = Math.max(1, Math.floor(perSecond * (1 - PROBES_PART)));
  const limits = { probe: all, other: all.lane({ rank: 1, share }) };
  const waiting = { probe: 0, other: 0 };
  const closed$ = new ReplaySubject<void>(1);
  return {
    /** Resolves when it is one's turn; false at once when too many wait, or after the close. */
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
    /** Sends away who still waits, and whoever comes. */
    close: () => closed$.next(),
  };
}

/**
 * The same work for a key, done at most once in `everyMs`. What it came to is kept for so long, and then let go of; beyond `most` keys at
 * once the work is done each time.
 */
export function atMostOncePer<T>(
  everyMs: number,
  most: number,
  work: (key: string) => T,
): (key: string) => T {
  const kept = new Map<string, T>();
  return (key) => {
    if (kept.has(key)) return kept.get(key)!;
    const result = work(key);
    if (kept.size < most) {
      kept.set(key, result);
      setTimeout(() => kept.delete(key), everyMs).unref();
    }
    return result;
  };
}
