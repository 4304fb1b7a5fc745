import * as real from '../../../src/streams/paging/poll.ts';

export * from '../../../src/streams/paging/poll.ts';

/** A window begins where the one before it began: a commit that becomes visible late is never read. */
export const poll: typeof real.poll = (options) => real.poll({ ...options, lookbackMs: 0 });
