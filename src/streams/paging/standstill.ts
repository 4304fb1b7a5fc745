// Fields that differ in every answer and so keep pages from joining: how a scan that stands still finds them, and which of them its list's
// anchors leave out.

import { canonicalJson, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import { pointerStep } from '../../schemas/json/pointer.ts';
import type { PageRecords } from '../records/page-records.ts';
import { volatileFields } from '../records/volatile-fields.ts';
import type { Anchor } from './anchors.ts';

/** The fields that the anchors of a list leave out: those that are set, and those that differ in every answer. */
export interface LeftOut {
  /** As JSON Pointers, sorted. */
  readonly fields: () => readonly string[];
  /** These were found. What is new among them is told. */
  readonly add: (fields: readonly string[]) => void;
}

/** Found ones, at most: a list may give its fields other names in every answer. */
const MAX_FOUND = 50;

/**
 * For all scans of one list: what one has found the others need not find again.
 *
 * @param set Pointers that are known from the start, and not told.
 */
export function leftOut(
  set: readonly string[] = [],
  onFound?: (fields: readonly string[]) => void,
): LeftOut {
  let fields = [...set].sort();
  return {
    fields: () => fields,
    add: (found) => {
      const room = set.length + MAX_FOUND - fields.length;
      const news = found.filter((field) => !fields.includes(field)).slice(0, room);
      if (news.length === 0) return;
      fields = [...fields, ...news].sort();
      onFound?.(news);
    },
  };
}

/**
 * Number of pages that failed to join, without progress between them, after which differing fields are looked for. Too small: a changed
 * record passes for such a field.
 */
const ENOUGH = 3;
/**
 * Number of pages that failed to join, without progress between them, after which the scan reads a page without an overlap. Too small: a list
 * that changes quickly is read without overlaps, and has to be read again. Too large: a list whose overlap is too small for any anchor to be
 * recognized costs more requests. Once it was reached, {@link ENOUGH} failures suffice for the rest of the scan.
 */
const MAX_FAILURES = 30;

/**
 * Looks into a scan that comes no further: which fields keep its pages from joining? Holds the records that a page had for anchors against
 * what a page that did not join says of them. Only those count whose `updated_at` is the same: others have changed. So that field is never
 * among those that differ, and a list in which everything is being changed has none.
 */
export function standstill() {
  let furthest = -1;
  let failures = 0;
  let maxFailures = MAX_FAILURES;
  const kept = new Map<string, JsonObject>();
  let differing: ReadonlySet<string>[] = [];

  return {
    /** A page has joined, which ends so far in the list; with the anchors that it lends. */
    joined: (end: number, records: PageRecords, anchors: readonly Anchor[]): void => {
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
    /** A page has not joined. Gives the fields that differ in every answer, once that can be told. */
    failed: (records: PageRecords, leftOut: readonly string[]): readonly string[] => {
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
    /**
     * Whether the scan should read its next page without an overlap, because too many pages have failed to join since it last made
     * progress.
     */
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

/** Deeper values are held against each other whole. */
const MAX_DEPTH = 8;

/**
 * The fields in which two readings of one record differ, as JSON Pointers without places: an array on the
 * way means any of its elements. With all that lead there: `/images` where `/images/url` differs.
 */
function differingFields(one: JsonObject, other: JsonObject): ReadonlySet<string> {
  const found = new Set<string>();
  const compare = (
    pointer: string,
    a: JsonValue | undefined,
    b: JsonValue | undefined,
    depth: number,
  ): void => {
    if (a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b)) return;
    if (pointer !== '') found.add(pointer);
    if (depth === MAX_DEPTH) return;
    if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
      a.forEach((element, place) => compare(pointer, element, b[place], depth + 1));
    } else if (isJsonObject(a) && isJsonObject(b)) {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
        compare(pointer + pointerStep(name), own(a, name), own(b, name), depth + 1);
      }
    }
  };
  compare('', one, other, 0);
  return found;
}

/** Of so many comparisons a field must have differed in one, or it is a record's own affair. */
const ONE_IN = 4;

/**
 * Of what differs in several pairs the fields that differ in many of them, each as far in as that holds: a
 * name that one record alone has is no name of a field, and may be personal.
 */
function commonFields(differing: readonly ReadonlySet<string>[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const each of differing) {
    for (const pointer of each) counts.set(pointer, (counts.get(pointer) ?? 0) + 1);
  }
  const common = [...counts.keys()].filter(
    (each) => counts.get(each)! * ONE_IN >= differing.length,
  );
  return common.filter((each) => !common.some((other) => other.startsWith(`${each}/`))).sort();
}

function own(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
