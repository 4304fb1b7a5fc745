import * as real from '../../../src/streams/paging/pager.ts';
import { withOthers } from '../with-others.ts';

export * from '../../../src/streams/paging/pager.ts';

/**
 * A page with fewer records than requested is taken for the end of the list, though many servers cap the page size.
 *
 * Noticed by the simulation of styles (test/sim/styles).
 */
export const pagerOf: typeof real.pagerOf = (...options) => {
  const pager = real.pagerOf(...options);
  return withOthers(pager, {
    hasNext: (page) => pager.hasNext(page) && page.records.length >= page.place.pageSize,
  });
};
