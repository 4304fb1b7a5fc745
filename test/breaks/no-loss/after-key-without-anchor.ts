import * as real from '../../../src/streams/paging/pager.ts';
import { withOthers } from '../with-others.ts';

export * from '../../../src/streams/paging/pager.ts';

/**
 * A page after a key counts as it comes, though a server that does not know the key may have answered with the front of the list.
 *
 * Noticed by the simulation of styles (test/sim/styles).
 */
export const pagerOf: typeof real.pagerOf = (list, plan, pageSize) => {
  const pager = real.pagerOf(list, plan, pageSize);
  return list?.paging === 'after' ? withOthers(pager, { overlaps: false }) : pager;
};
