// Which proofs a list allows, by what its description says of it.

import type { ListDescription } from './description.ts';

/**
 * Level of trust in a full scan, strongest first: `anchored`: each page showed, unchanged, a record read before; `counted`: as
 * many distinct keys as a total that held still; `whole`: one answer held the list; `read`: read to its end, nothing more.
 */
export type ReadingLevel = 'anchored' | 'counted' | 'whole' | 'read';

/** Returns the levels that readings of a list can reach, strongest first. */
export function possibleLevels({ paging, total, query, body }: ListDescription): ReadingLevel[] {
  const choosesSize = JSON.stringify([query, body]).includes('{limit}');
  const levels: ReadingLevel[] = [];
  if (paging === 'offset' || paging === 'after' || (paging === 'page' && choosesSize)) {
    levels.push('anchored');
  }
  if (total !== undefined) levels.push('counted');
  if (paging === 'none') levels.push('whole');
  return levels.length > 0 ? levels : ['read'];
}
