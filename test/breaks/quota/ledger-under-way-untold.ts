import * as real from '../../../src/account/ledger/ledger.ts';
import { withOthers } from '../with-others.ts';

export * from '../../../src/account/ledger/ledger.ts';

/** A declaration tells of no request that is under way as it is sent. */
export const openLedger: typeof real.openLedger = (options) => {
  const ledger = real.openLedger(options);
  return withOthers(ledger, {
    claim: (log) =>
      ledger.claim(
        withOthers(log, {
          append: (text) => log.append(text.replaceAll(/"underWay":\d+/g, '"underWay":0')),
        }),
      ),
  });
};
