import { timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Opening } from '../pipeline/list-task.ts';

/** How many lists of an instance are opened at once, but for the first one of each account, which waits for none. */
const PLACES = 6;
/** A list that takes longer, as one with many images, does not keep others from theirs, ms. */
const WITHIN_MS = 5_000;

/**
 * The order in which the lists of an instance are opened: the first one of an account at once, then the second one of
 * each, and so on. So no account stays silent while other accounts' lists are restored.
 */
export function openings(scheduler: SchedulerLike): Opening {
  let underWay = 0;
  /** By a list's place in its account, who waits. */
  const waiting: (() => void)[][] = [];
  const next = (): void => {
    if (underWay < PLACES) waiting.find(({ length }) => length > 0)?.shift()!();
  };
  return async (open, nth) => {
    await new Promise<void>((resolve) => {
      const enter = () => {
        underWay += 1;
        resolve();
      };
      if (nth === 0) return enter();
      (waiting[nth - 1] ??= []).push(enter);
      next();
    });
    let isHeld = true;
    const leave = (): void => {
      if (!isHeld) return;
      isHeld = false;
      underWay -= 1;
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
