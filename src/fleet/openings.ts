import { timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Opening } from '../pipeline/list-task.ts';

/** How many lists of an instance are opened at once. */
const PLACES = 4;
/** A list that takes longer, as one with many images, does not keep others from theirs, ms. */
const WITHIN_MS = 5_000;

/**
 * The order in which the lists of an instance are opened: first one of each account, so that no account stays silent while
 * other lists of those before it are restored.
 */
export function openings(scheduler: SchedulerLike): Opening {
  let free = PLACES;
  const waiting = { first: [] as (() => void)[], other: [] as (() => void)[] };
  const next = (): void => {
    if (free === 0) return;
    const enter = waiting.first.shift() ?? waiting.other.shift();
    if (!enter) return;
    free -= 1;
    enter();
  };
  return async (open, rank) => {
    await new Promise<void>((enter) => {
      waiting[rank].push(enter);
      next();
    });
    let isHeld = true;
    const leave = (): void => {
      if (isHeld) free += 1;
      isHeld = false;
      next();
    };
    const late = timer(WITHIN_MS, scheduler).subscribe(leave);
    try {
      return await open();
    } finally {
      late.unsubscribe();
      leave();
    }
  };
}
