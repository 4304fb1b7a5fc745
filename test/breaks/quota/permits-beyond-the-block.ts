import * as real from '../../../src/account/permits/permit-grants.ts';
import { withOthers } from '../with-others.ts';

export * from '../../../src/account/permits/permit-grants.ts';

/** Permits last longer than what the service that gives them has declared. */
export const permitGrants: typeof real.permitGrants = (options) => {
  const { ledger } = options;
  const leftMs = () => ledger.leaseRemainingMs() + 15_000;
  return real.permitGrants({
    ...options,
    ledger: withOthers(ledger, { leaseRemainingMs: leftMs }),
  });
};
