import { defer, exhaustMap, ignoreElements, interval } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { FleetLog } from './fleet-log.ts';
import { isNews } from './report-news.ts';
import { reportMessage } from './report.ts';
import type { Report } from './report.ts';

export interface ReportingOptions {
  /** Names this process. */
  readonly instance: string;
  /** As people know it. */
  readonly name: string;
  readonly topic: string;
  readonly log: FleetLog;
  readonly report: () => Report['accounts'];
  readonly onRetry: (error: unknown) => void;
  readonly scheduler: SchedulerLike;
}

/** How often it is looked whether there is something to tell, ms. */
const LOOK_EVERY_MS = 15_000;

/** Tells the fleet how this instance's accounts are, whenever that differs from what the topic says. Emits nothing. */
export function reporting(options: ReportingOptions): Observable<never> {
  const { instance, name, topic, log, report, onRetry, scheduler } = options;
  const told = async (): Promise<void> => {
    const accounts = report();
    if (!isNews(accounts, log.reports.get(instance)?.accounts)) return;
    const at = new Date(scheduler.now()).toISOString();
    await log.send(reportMessage(topic, { type: 'reports', instance, name, at, accounts }));
  };
  return interval(LOOK_EVERY_MS, scheduler).pipe(
    exhaustMap(() => defer(() => told().catch(onRetry))), // the next look tells it
    ignoreElements(),
  );
}
