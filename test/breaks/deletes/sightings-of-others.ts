import * as real from '../../../src/streams/paging/sweep-progress.ts';

export * from '../../../src/streams/paging/sweep-progress.ts';

/** A proof goes on though others have had the task since, who may have seen what this store has not. */
export const resumedSweep: typeof real.resumedSweep = (sweep, over) =>
  real.resumedSweep(sweep, { ...over, byOthers: false });
