import { isDeepStrictEqual } from 'node:util';
import { defer, exhaustMap, ignoreElements, interval } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { FleetLog } from './fleet-log.ts';
import { reportMessage } from './report.ts';
import type { AccountReport, Report } from './report.ts';

export interface ReportingOptions {
  readonly instance: string;
  /** Human-readable name of the instance. */
  readonly name: string;
  readonly topic: string;
  readonly log: FleetLog;
  readonly report: () => Report['accounts'];
  readonly onRetry: (error: unknown) => void;
  readonly scheduler: SchedulerLike;
}

/** Interval at which the state of this instance's accounts is compared with the instance's last report in the fleet's topic, in ms. */
const CHECK_EVERY_MS = 15_000;

/**
 * Writes a report on this instance's accounts to the fleet's topic whenever it differs notably from the last report in the topic. Emits
 * nothing.
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

/** Whether the report `now` differs notably from the report `before`. Figures change all the time, so small differences do not count. */
export function isReportable(now: Report['accounts'], before: Report['accounts'] = {}): boolean {
  const accounts = Object.entries(now);
  if (accounts.length !== Object.keys(before).length) return true;
  return accounts.some(([account, report]) => {
    const known = before[account];
    return !known || hasChanged(report, known);
  });
}

function hasChanged(now: AccountReport, before: AccountReport): boolean {
  if (now.weight !== before.weight || now.failed !== before.failed) return true;
  if (now.prefix !== before.prefix) return true;
  if (!now.figures || !before.figures) return now.figures !== before.figures;
  const [a, b] = [now.figures, before.figures];
  return (
    a.ready !== b.ready ||
    !isDeepStrictEqual([a.causes, a.reasons], [b.causes, b.reasons]) ||
    a.quota?.name !== b.quota?.name ||
    differsNotably(a.lagMs, b.lagMs, 1_000) ||
    (a.lookedAt === null) !== (b.lookedAt === null) ||
    differsNotably(a.eventsPerSecond, b.eventsPerSecond, 1) ||
    Math.abs(shareOf(a.quota?.used, a.quota?.limit) - shareOf(b.quota?.used, b.quota?.limit)) >
      0.1 ||
    (a.firstRead === null) !== (b.firstRead === null) ||
    Math.abs(
      shareOf(a.firstRead?.read, a.firstRead?.total) -
        shareOf(b.firstRead?.read, b.firstRead?.total),
    ) > 0.05
  );
}

function shareOf(some = 0, all = 0): number {
  return all > 0 ? some / all : 0;
}

/**
 * Whether two figures differ notably: exactly one of them is null, or they differ by more than `least` and by more than half of the larger
 * one.
 */
function differsNotably(a: number | null, b: number | null, least: number): boolean {
  if (a === null || b === null) return a !== b;
  return Math.abs(a - b) > Math.max(least, Math.max(a, b) / 2);
}
