import * as real from '../../../src/streams/paging/anchors.ts';

export * from '../../../src/streams/paging/anchors.ts';

/**
 * Pages begin where the page before ended, and each counts as it comes: records that deletions moved into the page before are lost.
 *
 * Noticed by the simulation of styles (test/sim/styles).
 */
export const joinPage: typeof real.joinPage = (at, data, options) =>
  real.joinPage({ ...at, isBlind: true }, data, { ...options, overlap: 0 });
