import { overruns } from '../../account/ledger/overruns.ts';
import type { SimAccount } from './sim-account.ts';

const MINUTE_MS = 60_000;

/** The quota, in ANY window of 60 s, as the account's server counts arrivals: of all instances together. */
export function checkQuotas({ name, arrived, config }: SimAccount): string[] {
  const of = (endpoint: string) => arrived.filter((each) => each.endpoint === endpoint);
  const { perMinute, loginsPerMinute } = config.quota;
  return [
    ...overruns(of('orders'), `${name} orders`, perMinute, MINUTE_MS),
    ...overruns(of('login'), `${name} login`, loginsPerMinute, MINUTE_MS),
  ];
}
