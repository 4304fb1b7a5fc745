import * as real from '../../../src/account/ledger/used-requests.ts';

export * from '../../../src/account/ledger/used-requests.ts';

/** A request that was given up is taken to have arrived by then, though it may still be on its way. */
export const usedRequests: typeof real.usedRequests = () => {
  const used = real.usedRequests();
  return { ...used, requestEnded: (at) => used.requestEnded(at, true) };
};
