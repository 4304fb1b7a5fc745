import type * as real from '../../../src/streams/paging/sweep-progress.ts';

export * from '../../../src/streams/paging/sweep-progress.ts';

/** A record that one exact sweep has not seen counts as gone, and need not stay so. */
export const absencePairs: typeof real.absencePairs = ({ newest, proof }) =>
  newest && proof === 'exact' ? [{ first: newest, second: newest }] : [];
