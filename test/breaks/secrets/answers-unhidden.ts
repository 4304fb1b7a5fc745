import type * as real from '../../../src/streams/decode/hiding-list.ts';

export * from '../../../src/streams/decode/hiding-list.ts';

/** Answers come with their personal fields. */
export const hidingList: typeof real.hidingList = (request) => request;
