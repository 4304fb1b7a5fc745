import type * as real from '../../../src/pipeline/checkpoint/ownership.ts';

export * from '../../../src/pipeline/checkpoint/ownership.ts';

/** Any broker is believed about where a topic ends: one that leads no longer tells of less. */
export const asLeftBy: typeof real.asLeftBy = (_sink, place) => place;
