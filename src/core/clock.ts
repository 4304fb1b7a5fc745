import { asyncScheduler } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/**
 * Scheduler with a clock that never goes back: the machine's clock at the start of the process plus the monotonic time since then, in epoch
 * ms. Steps of the machine's clock (NTP) do not affect it, so intervals are measured with it. Its times can be stored for the next process.
 */
export const steadyScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: asyncScheduler.schedule.bind(asyncScheduler),
};

/**
 * Returns a function that reads the machine's clock in epoch ms, for times that are shown to users or other systems. Unlike
 * {@link steadyScheduler}, it follows every step of that clock.
 *
 * @param onSetBack Called when the clock was set back, with the difference in ms.
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
