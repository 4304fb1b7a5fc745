import type * as real from '../../../src/streams/paging/sweep-progress.ts';

export * from '../../../src/streams/paging/sweep-progress.ts';

/** What one exact sweep has not seen is gone, and need not stay so. */
export const deletedUnlessSeenSince: typeof real.deletedUnlessSeenSince = ({
  phase,
  proof,
  number,
}) => (phase === 'removing' && proof === 'exact' ? number : undefined);
