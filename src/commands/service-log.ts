import { distinctUntilChanged, map, timer } from 'rxjs';
import type { SchedulerLike, Subscription } from 'rxjs';
import type { Config } from '../config/config.ts';
import type { SettingsSource } from '../config/load-config.ts';
import { settingWarnings } from '../config/setting-warnings.ts';
import type { LineLogger } from '../observe/log.ts';
import type { Readiness } from '../ops/status/causes.ts';

/**
 * Logs a warning for each setting that is allowed but may be a mistake.
 *
 * @param source Where the settings of `config` were read from.
 */
export function logSettings(logger: LineLogger, config: Config, source: SettingsSource): void {
  for (const { name, advice } of settingWarnings(config, source)) {
    logger.warn({ event: 'setting', setting: name }, `${name} ${advice}`);
  }
}

export function logOperations(logger: LineLogger): (error: unknown) => void {
  return (error) =>
    logger.error(
      { event: 'operations', err: error },
      'a hook (callback function) or an HTTP endpoint (status page, metrics, health) of this service failed; the service continues',
    );
}

/** Interval at which the service's readiness is checked, in ms. A state that lasts less time may not be noticed. */
const CHECK_EVERY_MS = 1_000;

/**
 * Logs whether the service is ready: at the first check, and when the causes of its not being ready change. Logs until the returned
 * subscription is unsubscribed.
 */
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
