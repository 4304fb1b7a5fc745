import { asyncScheduler } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/** A clock that stands still but for its timers. */
export interface HurriedTime {
  readonly scheduler: SchedulerLike;
  /** The delays that were asked for, in ms. */
  readonly waits: readonly number[];
}

/**
 * For tests that need real I/O: every timer fires in the next turn of the event loop and takes the
 * clock to when it was due. Meant for one timer at a time.
 */
export function hurriedTime(start = 0): HurriedTime {
  const waits: number[] = [];
  let now = start;
  const scheduler = {
    now: () => now,
    schedule: (work: () => void, delayMs = 0) => {
      waits.push(delayMs);
      const due = now + delayMs;
      return asyncScheduler.schedule(() => {
        now = Math.max(now, due);
        work();
      });
    },
  } as SchedulerLike;
  return { scheduler, waits };
}
