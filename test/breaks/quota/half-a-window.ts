import * as real from '../../../src/streams/quota/token-bucket.ts';

export * from '../../../src/streams/quota/token-bucket.ts';

/** A token comes back after half of its window. */
export const tokenBucket: typeof real.tokenBucket = (options) =>
  real.tokenBucket({ ...options, windowMs: options.windowMs / 2 });
