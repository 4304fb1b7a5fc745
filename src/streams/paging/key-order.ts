import { PageRecord } from '../records/page-record.ts';
import type { PageRecords } from '../records/page-records.ts';

/** How a reading's records are sorted by their keys: `none` once two neighbours contradict, null before two have differed. */
export type KeyOrder = 'asc' | 'desc' | 'none' | null;

/** The order after one more page. Pages overlap, so each needs only be compared within itself. */
export function keyOrderAfter(order: KeyOrder, records: PageRecords): KeyOrder {
  if (order === 'none') return order;
  const keys = keysOf(records);
  return keys
    .slice(1)
    .reduce((shown, key, nth) => orderWith(shown, compareKeys(keys[nth]!, key)), order as KeyOrder);
}

function orderWith(order: KeyOrder, sign: number): KeyOrder {
  if (sign === 0 || order === 'none') return order;
  const next = sign < 0 ? 'asc' : 'desc';
  return order === null || order === next ? next : 'none';
}

const WHOLE_NUMBER = /^(?:0|[1-9]\d*)$/;

/** Compares whole numbers by their value, all other keys by their characters. */
function compareKeys(one: string, other: string): number {
  if (one.length !== other.length && WHOLE_NUMBER.test(one) && WHOLE_NUMBER.test(other))
    return one.length - other.length;
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The keys of a page's records, without those that have none. */
function keysOf({ parts }: Pick<PageRecords, 'parts'>): readonly string[] {
  return parts.flatMap((part): readonly string[] => {
    if (part instanceof PageRecord) return part.key === undefined ? [] : [part.key];
    return part.run.members.map(({ key }) => key);
  });
}
