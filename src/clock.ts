import { asyncScheduler } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/**
 * Time that only goes forward: the machine's clock as it was when the process started, and from
 * then on the monotonic one. A step of the machine's clock (NTP) does not reach it, and its times
 * can be kept for the next process.
 */
export const steadyScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: asyncScheduler.schedule.bind(asyncScheduler),
};
