import { distinctUntilChanged, map, timer } from 'rxjs';
import type { SchedulerLike, Subscription } from 'rxjs';
import type { LineLogger } from '../observe/log.ts';
import type { Readiness } from '../ops/status/readiness.ts';

/** How often it is looked at, ms: a change of a moment is none. */
const EVERY_MS = 1_000;

/**
 * Says it in a line when the service becomes ready, when it no longer is, and when it isn't for
 * another cause. Until it is unsubscribed.
 */
export function logReadiness(
  logger: LineLogger,
  check: () => Readiness,
  scheduler: SchedulerLike,
): Subscription {
  return timer(EVERY_MS, EVERY_MS, scheduler)
    .pipe(
      map(check),
      distinctUntilChanged((a, b) => a.causes.join() === b.causes.join()),
    )
    .subscribe(({ ready, reasons, causes }) => {
      const isNormal = causes.every((cause) => cause === 'starting');
      logger[isNormal ? 'info' : 'warn'](
        { event: 'readiness', ready, reasons },
        ready ? 'ready' : 'not ready',
      );
    });
}
