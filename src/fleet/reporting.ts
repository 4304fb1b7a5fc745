import { defer, exhaustMap, ignoreElements, interval } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { FleetLog } from './fleet-log.ts';
import { isReportable } from './report-changes.ts';
import { reportMessage } from './report.ts';
import type { Report } from './report.ts';

export interface ReportingOptions {
  /** Unique id of this process. */
  readonly instance: string;
  /** Human-readable name of the instance. */
  readonly name: string;
  readonly topic: string;
  readonly log: FleetLog;
  readonly report: () => Report['accounts'];
  readonly onRetry: (error: unknown) => void;
  readonly scheduler: SchedulerLike;
}

/** How often the current state of this instance's accounts is compared with the last report, in ms. */
const CHECK_EVERY_MS = 15_000;

/**
 * Writes a report on this instance's accounts to the fleet's topic whenever it differs notably from the last one there. The observable
 * emits nothing.
 */
export function reporting(options: ReportingOptions): Observable<never> {
  const { instance, name, topic, log, report, onRetry, scheduler } = options;
  const reportIfChanged = async (): Promise<void> => {
    const accounts = report();
    if (!isReportable(accounts, log.reports.get(instance)?.accounts)) return;
    const at = new Date(scheduler.now()).toISOString();
    await log.send(reportMessage(topic, { type: 'reports', instance, name, at, accounts }));
  };
  return interval(CHECK_EVERY_MS, scheduler).pipe(
    exhaustMap(() => defer(() => reportIfChanged().catch(onRetry))), // retried at the next interval
    ignoreElements(),
  );
}
