import { asyncScheduler } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/**
 * Scheduler whose clock never goes back. Its time is the machine's clock at the start of the process plus the monotonic time since then, in
 * epoch ms. Later adjustments of the machine's clock (NTP) do not affect it, so it is suitable for measuring intervals. Stored times can be
 * compared with those of a later process, because both are epoch times.
 */
export const steadyScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: asyncScheduler.schedule.bind(asyncScheduler),
};

/**
 * Returns a function that reads the machine's clock, in epoch ms, for times that are shown to users or other systems. Unlike
 * {@link steadyScheduler}, the returned time follows every adjustment of the machine's clock.
 *
 * @param onSetBack Called if the clock shows an earlier time than at the previous call of the function, with the difference in ms.
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
