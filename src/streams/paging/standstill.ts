import { canonicalJson, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import type { Anchor } from './anchors.ts';
import { commonFields, differingFields } from './differing-fields.ts';
import type { PageRecords } from '../records/page-records.ts';
import { volatileFields } from '../records/volatile-fields.ts';

/** Looks into a scan that comes no further: which fields keep its pages from joining? */
export interface Standstill {
  /** A page has joined, which ends so far in the list; with the anchors that it lends. */
  readonly joined: (end: number, records: PageRecords, anchors: readonly Anchor[]) => void;
  /** A page has not joined. Gives the fields that differ in every answer, once that can be told. */
  readonly failed: (records: PageRecords, leftOut: readonly string[]) => readonly string[];
  /** Whether the scan should read its next page without an overlap, because too many pages have failed to join since it last made progress. */
  readonly mustReadBlind: () => boolean;
}

/** Number of pages that failed to join, without progress between them, after which differing fields are looked for. Too small: a changed record passes for such a field. */
const ENOUGH = 3;
/**
 * Number of pages that failed to join, without progress between them, after which the scan reads a page without an overlap. Too small: a list
 * that changes quickly is read without overlaps, and has to be read again. Too large: a list whose overlap is too small for any anchor to be
 * recognized costs more requests. Once it was reached, {@link ENOUGH} failures suffice for the rest of the scan.
 */
const MAX_FAILURES = 30;

/**
 * Holds the records that a page had for anchors against what a page that did not join says of them. Only
 * those count whose `updated_at` is the same: others have changed. So that field is never among those
 * that differ, and a list in which everything is being changed has none.
 */
export function standstill(): Standstill {
  let furthest = -1;
  let failures = 0;
  let maxFailures = MAX_FAILURES;
  const kept = new Map<string, JsonObject>();
  let differing: ReadonlySet<string>[] = [];

  return {
    joined: (end, records, anchors) => {
      if (end > furthest) {
        furthest = end;
        failures = 0;
        differing = [];
        kept.clear();
      }
      if (failures === 0) return;
      const keys = new Set(anchors.map(([key]) => key));
      for (const [key, record] of byKey(records, keys)) kept.set(key, record);
    },
    failed: (records, leftOut) => {
      failures += 1;
      if (failures >= MAX_FAILURES) maxFailures = ENOUGH;
      const { without } = volatileFields(leftOut);
      for (const [key, record] of byKey(records, kept)) {
        const [was, is] = [without(kept.get(key)!), without(record)] as [JsonObject, JsonObject];
        if (stamp(was) === stamp(is)) differing.push(differingFields(was, is));
      }
      if (failures % ENOUGH !== 0) return [];
      const found = commonFields(differing);
      differing = [];
      return found;
    },
    mustReadBlind: () => failures >= maxFailures,
  };
}

function* byKey(
  records: PageRecords,
  keys: { has(key: string): boolean; readonly size: number },
): Generator<[string, JsonObject]> {
  if (keys.size === 0) return;
  for (const record of records.all()) {
    if (record.key === undefined || !keys.has(record.key)) continue;
    if (isJsonObject(record.json)) yield [record.key, record.json];
  }
}

function stamp({ updated_at = null }: JsonObject): string {
  return canonicalJson(updated_at);
}
