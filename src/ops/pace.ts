import { firstValueFrom, of, Subject, takeUntil } from 'rxjs';
import { steadyScheduler } from '../clock.ts';
import { tokenBucket } from '../streams/token-bucket.ts';

/** A line in which everybody waits for their turn. */
export interface Pace {
  /** Resolves when it is one's turn; false at once when too many wait, or after the close. */
  readonly turn: () => Promise<boolean>;
  /** Sends away who still waits. */
  readonly close: () => void;
}

/** At most `perSecond` turns in any second; who comes while `most` wait gets none. */
export function pace(perSecond: number, most: number): Pace {
  const limit = tokenBucket({ capacity: perSecond, windowMs: 1_000, scheduler: steadyScheduler });
  const closed$ = new Subject<void>();
  let waiting = 0;
  return {
    turn: async () => {
      if (waiting >= most) return false;
      waiting += 1;
      try {
        return await firstValueFrom(of(true).pipe(limit, takeUntil(closed$)), {
          defaultValue: false,
        });
      } finally {
        waiting -= 1;
      }
    },
    close: () => closed$.next(),
  };
}
