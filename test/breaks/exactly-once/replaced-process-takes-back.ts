import * as real from '../../../src/pipeline/checkpoint/checkpoint.ts';

export * from '../../../src/pipeline/checkpoint/checkpoint.ts';

/** A process that opens its task again has forgotten whose it was, and takes it back from whoever has replaced it. */
export const openCheckpoint: typeof real.openCheckpoint = (options) =>
  real.openCheckpoint({ ...options, claimState: {} });
