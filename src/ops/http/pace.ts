import { firstValueFrom, of, ReplaySubject, takeUntil } from 'rxjs';
import { steadyScheduler } from '../../core/clock.ts';
import { tokenBucket } from '../../streams/quota/token-bucket.ts';

/** A line in which everybody waits for their turn. */
export interface Pace {
  /** Resolves when it is one's turn; false at once when too many wait, or after the close. */
  readonly turn: (who: 'probe' | 'other') => Promise<boolean>;
  /** Sends away who still waits, and whoever comes. */
  readonly close: () => void;
}

/** What all others leave to probes: who asks whether the process is alive must not wait for who floods it. */
const PROBES_PART = 0.2;

/** At most `perSecond` turns in any second, probes first; who comes while `most` of the kind wait gets none. */
export function pace(perSecond: number, most: number): Pace {
  const all = tokenBucket({ capacity: perSecond, windowMs: 1_000, scheduler: steadyScheduler });
  const share = Math.max(1, Math.floor(perSecond * (1 - PROBES_PART)));
  const limits = { probe: all, other: all.lane({ rank: 1, share }) };
  const waiting = { probe: 0, other: 0 };
  const closed$ = new ReplaySubject<void>(1);
  return {
    turn: async (who) => {
      if (waiting[who] >= most) return false;
      waiting[who] += 1;
      try {
        const turn$ = of(true).pipe<boolean, boolean>(limits[who], takeUntil(closed$));
        return await firstValueFrom(turn$, { defaultValue: false });
      } finally {
        waiting[who] -= 1;
      }
    },
    close: () => closed$.next(),
  };
}
