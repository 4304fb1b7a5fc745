import * as real from '../../../src/account/ledger/ledger.ts';
import { withOthers } from '../with-others.ts';

export * from '../../../src/account/ledger/ledger.ts';

/** Requests begin while the declaration that lets them is still being committed. */
export const openLedger: typeof real.openLedger = (options) => {
  const ledger = real.openLedger(options);
  return withOthers(ledger, {
    claim: (log) =>
      ledger.claim(
        withOthers(log, {
          append: (text) => {
            log.append(text).catch(() => undefined);
            return Promise.resolve();
          },
        }),
      ),
  });
};
