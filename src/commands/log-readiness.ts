import { distinctUntilChanged, map, timer } from 'rxjs';
import type { SchedulerLike, Subscription } from 'rxjs';
import type { LineLogger } from '../observe/log.ts';
import type { Readiness } from '../ops/status/readiness.ts';

/** How often the service's readiness is checked, in ms. Shorter changes are not logged. */
const CHECK_EVERY_MS = 1_000;

/** Logs a line when the service becomes ready, when it stops being ready, and when the causes change, until unsubscribed. */
export function logReadiness(
  logger: LineLogger,
  check: () => Readiness,
  scheduler: SchedulerLike,
): Subscription {
  return timer(CHECK_EVERY_MS, CHECK_EVERY_MS, scheduler)
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
