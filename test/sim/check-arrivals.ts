import { overruns } from '../account/ledger/overruns.ts';
import { WINDOW_MS } from './sim-api.ts';
import type { ApiTraits, Arrival } from './sim-api.ts';

/** The quota, in ANY window of 60 s, as the server counts arrivals: of all processes together, whatever became of them. */
export function checkArrivals(
  arrivals: readonly Arrival[],
  { quotaPerMinute, loginsPerMinute }: Pick<ApiTraits, 'quotaPerMinute' | 'loginsPerMinute'>,
): string[] {
  const of = (what: Arrival['what']) => arrivals.filter((each) => each.what === what);
  return [
    ...overruns(of('list'), 'list', quotaPerMinute, WINDOW_MS),
    ...overruns(of('login'), 'login', loginsPerMinute, WINDOW_MS),
  ];
}
