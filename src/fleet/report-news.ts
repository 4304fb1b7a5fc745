import { isDeepStrictEqual } from 'node:util';
import type { AccountReport, Report } from './report.ts';

type Accounts = Report['accounts'];

/** Whether there is something to tell that was not told yet. Figures move all the time: they are news where it shows. */
export function isNews(now: Accounts, before: Accounts = {}): boolean {
  const accounts = Object.entries(now);
  if (accounts.length !== Object.keys(before).length) return true;
  return accounts.some(([account, report]) => {
    const known = before[account];
    return !known || isOther(report, known);
  });
}

function isOther(now: AccountReport, before: AccountReport): boolean {
  if (now.weight !== before.weight || now.failed !== before.failed) return true;
  if (now.prefix !== before.prefix) return true;
  if (!now.figures || !before.figures) return now.figures !== before.figures;
  const [a, b] = [now.figures, before.figures];
  return (
    a.ready !== b.ready ||
    !isDeepStrictEqual([a.causes, a.reasons], [b.causes, b.reasons]) ||
    a.quota?.name !== b.quota?.name ||
    isFar(a.lagMs, b.lagMs, 1_000) ||
    (a.lookedAt === null) !== (b.lookedAt === null) ||
    isFar(a.eventsPerSecond, b.eventsPerSecond, 1) ||
    Math.abs(partOf(a.quota?.used, a.quota?.limit) - partOf(b.quota?.used, b.quota?.limit)) > 0.1 ||
    (a.firstRead === null) !== (b.firstRead === null) ||
    Math.abs(
      partOf(a.firstRead?.read, a.firstRead?.total) - partOf(b.firstRead?.read, b.firstRead?.total),
    ) > 0.05
  );
}

function partOf(some = 0, all = 0): number {
  return all > 0 ? some / all : 0;
}

/** Whether one is there and the other is not, or they differ by half of the larger one, and by more than is of interest. */
function isFar(a: number | null, b: number | null, least: number): boolean {
  if (a === null || b === null) return a !== b;
  return Math.abs(a - b) > Math.max(least, Math.max(a, b) / 2);
}
