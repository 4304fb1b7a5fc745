import * as real from '../../../src/account/lanes.ts';

export * from '../../../src/account/lanes.ts';

/** Polls have the last claim on the quota, behind the initial snapshot. */
export const lanesOf: typeof real.lanesOf = (options) => ({
  ...real.lanesOf(options),
  poll: options.bucket.lane({ rank: 9 }),
});
