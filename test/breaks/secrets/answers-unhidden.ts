import * as real from '../../../src/streams/decode/list-request.ts';

export * from '../../../src/streams/decode/list-request.ts';

/** Answers come with their personal fields. */
export const decodedList: typeof real.decodedList = (options) =>
  real.decodedList({ ...options, hide: undefined });
