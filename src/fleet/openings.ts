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
  /** By their places in their accounts, and of one place in the order in which they came. */
  const waiting: { readonly nth: number; readonly enter: () => void }[] = [];
  const next = (): void => {
    if (underWay < PLACES) waiting.shift()?.enter();
  };
  return async (open, nth) => {
    await new Promise<void>((resolve) => {
      const enter = () => {
        underWay += 1;
        resolve();
      };
      if (nth === 0) return enter();
      const behind = waiting.findIndex((other) => other.nth > nth);
      waiting.splice(behind < 0 ? waiting.length : behind, 0, { nth, enter });
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
