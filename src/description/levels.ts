// Which proofs a list allows, by what its description says of it.

import type { ReadingLevel } from '../schemas/events/certificate.ts';
import { isPagedByOffset, totalRequestOf } from './description.ts';
import type { ListDescription } from './description.ts';

/** The properties of a list that decide what its full scans prove. */
export interface ReadingRules {
  /** Whether each page repeats records of the previous one. If one of them is unchanged (an anchor), no record was missed in between. */
  readonly overlaps: boolean;
  /** Whether one response contains the whole list. */
  readonly isWhole: boolean;
  /** Whether the API states how many records the list has. */
  readonly hasTotal: boolean;
  /**
   * Whether the total shows at which list offset the list ends. True for lists that have a total and whose pages can be requested directly.
   */
  readonly endsAtTotal: boolean;
  /** Whether only an empty page shows where the list ends. */
  readonly endsEmpty: boolean;
  /**
   * Whether the last page may be empty although the list has records: `endsEmpty` is true, or only `next` (a cursor or an address) shows
   * whether another page follows.
   */
  readonly mayEndEmpty: boolean;
  /** Whether a record counts as deleted if two full scans that read the same keys do not contain it. */
  readonly isAgreed: boolean;
}

export function readingRules(list: ListDescription): ReadingRules {
  const { paging, total, agreed } = list;
  const isByOffset = isPagedByOffset(list);
  const endsEmpty = !showsEnd(list);
  return {
    overlaps: paging === 'after' || isByOffset,
    isWhole: paging === 'none',
    hasTotal: total !== undefined,
    endsAtTotal: isByOffset && total !== undefined,
    endsEmpty,
    mayEndEmpty: endsEmpty || (list.next !== undefined && list.more === undefined),
    isAgreed: agreed,
  };
}

/**
 * Whether the responses with records also show where the list ends: by a total, or by whether another page follows. If false, only an empty
 * page shows the end.
 */
export function showsEnd({ paging, more, next, total }: ListDescription): boolean {
  const isTotalShown = total !== undefined && !totalRequestOf({ total });
  return paging === 'none' || more !== undefined || next !== undefined || isTotalShown;
}

export const LEVEL_WORDS: Readonly<Record<ReadingLevel, string>> = {
  anchored: 'anchored (each page shows a record read before)',
  counted: 'counted (as many keys as the total says)',
  agreed: 'agreed (two full scans have the same keys)',
  whole: 'whole (one response holds the list)',
  read: 'read (to the end of the list; a record that moved meanwhile may have been missed)',
};

/**
 * Whether the service can prove that a record of the list was deleted, by full scans or by requests for single records.
 *
 * @param isSorted False if the list is known not to be sorted by its key. Default true: a description does not state the order.
 */
export function canProveAbsence(list: ListDescription, isSorted = true): boolean {
  const proves = (level: ReadingLevel) =>
    level !== 'read' && (level !== 'anchored' || isSorted || !needsKeyOrder(list));
  return list.one !== undefined || possibleLevels(list).some(proves);
}

/**
 * Whether full scans reach the level `anchored` only if the list is sorted by its key. True for lists whose pages overlap and that are not
 * polled.
 */
export function needsKeyOrder(list: ListDescription): boolean {
  // Polls find the records that move to another page during a scan.
  return readingRules(list).overlaps && list.dates === undefined;
}

/** Returns the {@link possibleLevels} of a list in words. States if `anchored` requires a list that is sorted by its key. */
export function levelsInWords(list: ListDescription): string[] {
  const levels = possibleLevels(list);
  if (!needsKeyOrder(list)) return levels.map((level) => LEVEL_WORDS[level]);
  const others = levels.filter((level) => level !== 'anchored');
  return [
    `if the list is sorted by its key ${LEVEL_WORDS.anchored}`,
    ...(others.length > 0 ? others : (['read'] as const)).map((level) => LEVEL_WORDS[level]),
  ];
}

/** Returns the levels that full scans can reach, strongest first. A level is a kind of evidence that a scan read the whole list. */
export function possibleLevels(list: ListDescription): ReadingLevel[] {
  const { overlaps, hasTotal, isWhole, isAgreed } = readingRules(list);
  const levels: ReadingLevel[] = [];
  if (overlaps) levels.push('anchored');
  if (hasTotal) levels.push('counted');
  if (isAgreed) levels.push('agreed');
  if (isWhole) levels.push('whole');
  return levels.length > 0 ? levels : ['read'];
}
