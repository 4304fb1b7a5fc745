import { asyncScheduler } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/**
 * Scheduler whose clock never goes back, in epoch ms. It starts at the machine's time and then follows the monotonic clock, so later
 * adjustments of the machine's clock (NTP) do not affect it.
 */
export const steadyScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: asyncScheduler.schedule.bind(asyncScheduler),
};

/**
 * Returns a function that reads the machine's clock, in epoch ms, for times that are shown to users or other systems.
 *
 * @param onSetBack Called with the difference in ms if the clock shows an earlier time than at the previous call of the function.
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
