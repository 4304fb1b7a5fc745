import type { AccountFigures } from '../../observe/fleet-view.ts';
import type { Readiness } from './readiness.ts';
import type { ListFigures } from './resource-status.ts';
import { MAX_ERROR, shortened } from './shortened.ts';
import type { QuotaStatus } from './status-json.ts';

/** Of reasons, at most so many. */
const MAX_REASONS = 6;

export interface FiguresOptions {
  readonly at: number;
  readonly readiness: Readiness;
  readonly quotas: readonly QuotaStatus[];
  readonly lists: readonly ListFigures[];
}

/** An account in a few figures: of its lists, whichever is worst. */
export function accountFigures(options: FiguresOptions): AccountFigures {
  const { at, quotas, lists } = options;
  const { ready, reasons, causes } = options.readiness;
  const lags = lists.flatMap(({ lagMs }) => lagMs ?? []);
  const looks = lists.flatMap(({ lookedAt }) => lookedAt ?? []);
  const reads = lists.flatMap(({ firstRead }) => (firstRead?.done === false ? firstRead : []));
  const sum = (each: readonly number[]) => each.reduce((before, one) => before + one, 0);
  return {
    at,
    ready,
    reasons: reasons.slice(0, MAX_REASONS).map((reason) => shortened(reason, MAX_ERROR)),
    causes,
    lagMs: lags.length > 0 ? Math.max(...lags) : null,
    lookedAt: looks.length === lists.length ? Math.min(...looks) : null,
    quota: fullest(quotas.filter(({ name }) => name !== 'login')),
    eventsPerSecond: sum(lists.map(({ eventsPerSecond }) => eventsPerSecond)),
    firstRead:
      reads.length > 0
        ? { read: sum(reads.map(({ read }) => read)), total: sum(reads.map(({ total }) => total)) }
        : null,
  };
}

function fullest(quotas: readonly QuotaStatus[]): QuotaStatus | null {
  return quotas.toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0] ?? null;
}
