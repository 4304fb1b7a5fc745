import * as real from '../../../src/account/ledger/ledger.ts';

export * from '../../../src/account/ledger/ledger.ts';

/** A block ends by the monotonic clock alone, which stands still while the machine sleeps. */
export const openLedger: typeof real.openLedger = (options) =>
  real.openLedger({ ...options, wallNow: () => options.scheduler.now() });
