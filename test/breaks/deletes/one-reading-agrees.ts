import type * as real from '../../../src/streams/paging/sweep-progress.ts';

export * from '../../../src/streams/paging/sweep-progress.ts';

/**
 * A key that one reading of the list does not show is deleted, whatever that reading proves.
 *
 * Noticed by the simulation of styles (test/sim/styles).
 */
export const deletedUnlessSeenSince: typeof real.deletedUnlessSeenSince = ({ phase, number }) =>
  phase === 'removing' ? number : undefined;
