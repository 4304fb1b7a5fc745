// Which proofs a list allows, by what its description says of it.

import { isPagedByOffset } from './description.ts';
import type { ListDescription } from './description.ts';

/**
 * Evidence that a full scan read the whole list, strongest first. `anchored`: each page contained an unchanged record that was read before.
 * `counted`: the number of distinct keys matched a total that did not change. `whole`: one response contained the whole list. `read`: the
 * scan reached the end of the list, without any of this evidence.
 */
export type ReadingLevel = 'anchored' | 'counted' | 'whole' | 'read';

/** Returns the levels that full scans of a list can reach, strongest first. */
export function possibleLevels(list: ListDescription): ReadingLevel[] {
  const { paging, total } = list;
  const levels: ReadingLevel[] = [];
  if (paging === 'after' || isPagedByOffset(list)) levels.push('anchored');
  if (total !== undefined) levels.push('counted');
  if (paging === 'none') levels.push('whole');
  return levels.length > 0 ? levels : ['read'];
}
