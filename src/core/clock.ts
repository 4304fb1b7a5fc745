import { asyncScheduler } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/**
 * Time that only goes forward: the machine's clock as it was when the process started, and from
 * then on the monotonic one. A step of the machine's clock (NTP) does not reach it, so intervals are
 * counted by it, and its times can be kept for the next process.
 */
export const steadyScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: asyncScheduler.schedule.bind(asyncScheduler),
};

/**
 * The machine's clock, for times that others read, in ms since the epoch: it follows when that clock is
 * set right, back too. Told then by how many ms.
 */
export function wallClock(onSetBack: (backMs: number) => void, now = () => Date.now()) {
  let last = -Infinity;
  return (): number => {
    const at = now();
    if (at < last) onSetBack(last - at);
    last = at;
    return at;
  };
}
