// Detects fields that differ in every response and so keep pages from joining.

import { canonicalJson, getOwn, isJsonObject, pointerStep } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { KeyedRecord } from '../records/page-record.ts';
import type { PageRecords } from '../records/page-records.ts';
import { volatileFields } from '../records/volatile-fields.ts';
import type { Anchor } from './anchors.ts';

/** The fields that scans ignore when they compare a record with an earlier version: fields configured or detected as volatile. */
export interface LeftOut {
  /**
   * Returns the sorted JSON Pointers of all fields that scans ignore when they compare a record with an earlier version of it: configured
   * and detected volatile fields.
   */
  readonly fields: () => readonly string[];
  /**
   * Adds fields that were detected to differ in every response, so that scans ignore them as well. Reports the new ones to the `onFound`
   * callback. At most 50 detected fields are added.
   */
  readonly add: (fields: readonly string[]) => void;
}

/**
 * Maximum number of detected fields that are ignored. Without a maximum, a list that names its fields differently in every response would
 * add fields for ever.
 */
const MAX_FOUND = 50;

/**
 * Creates the collection of fields that all scans of one list ignore when they compare records.
 *
 * @param set Configured fields, as JSON Pointers. They are not reported.
 * @param onFound Called with newly detected fields.
 */
export function ignoredFields(
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
 * Number of pages without an anchor (an unchanged record that was read before) after which it is decided which fields differ in every
 * response. If it is too small, a field that really changed in two records may be ignored.
 */
const ENOUGH = 3;
/**
 * Number of pages without an anchor (an unchanged record that was read before), since the scan last advanced, at which the scan goes on
 * without one. It may then have missed records and have to be repeated: needlessly often if the number is too small. If it is too large, a
 * list whose pages overlap too little costs more requests.
 */
const MAX_FAILURES = 30;

/**
 * Detects fields that differ in every response. Because of such fields no record counts as unchanged, so that no page has an anchor (an
 * unchanged record that was read before) and the scan stops advancing.
 *
 * To find the fields, records that were chosen as anchors are compared with the same records on later pages. Records whose modification
 * times differ are not compared, because they have really changed.
 */
export class Standstill {
  #furthest = -1;
  /** Number of pages without an anchor (an unchanged record that was read before) since the scan last advanced. */
  #failures = 0;
  #maxFailures = MAX_FAILURES;
  /**
   * Records, by key, that the scan has chosen as anchors since it stepped back. They are compared with the same records on later pages, to
   * find fields that always differ.
   */
  readonly #anchors = new Map<string, JsonObject>();
  #comparisons: Comparison[] = [];

  /**
   * Processes an accepted page: one that has an anchor (an unchanged record that was read before), or needs none.
   *
   * @param end List offset after the page.
   * @param anchors Anchors chosen on the page.
   */
  joined(end: number, records: PageRecords, anchors: readonly Anchor[]): void {
    if (end > this.#furthest) {
      this.#furthest = end;
      this.#failures = 0;
      this.#comparisons = [];
      this.#anchors.clear();
    }
    if (this.#failures === 0) return;
    const keys = new Set(anchors.map(([key]) => key));
    for (const { key, json } of withKeys(records, keys)) this.#anchors.set(key, json);
  }

  /**
   * Counts a page that has no anchor (no unchanged record that was read before), and compares its records with `#anchors`. Every third call
   * since the scan last advanced returns the fields that seem to differ in every response; other calls return an empty array.
   *
   * @param leftOut Fields that are left out of the comparison, because they are already known to differ.
   */
  failed(records: PageRecords, leftOut: readonly string[]): readonly string[] {
    this.#failures += 1;
    if (this.#failures >= MAX_FAILURES) this.#maxFailures = ENOUGH; // until the scan ends or is repeated
    const { without } = volatileFields(leftOut);
    for (const { key, json, stamps } of withKeys(records, this.#anchors)) {
      const was = without(this.#anchors.get(key)!) as JsonObject;
      const is = without(json) as JsonObject;
      if (stamps?.updatedText(was) === stamps?.updatedText(is))
        this.#comparisons.push({ key, differing: differingFields(was, is) });
    }
    if (this.#failures % ENOUGH !== 0) return [];
    const found = commonFields(this.#comparisons);
    this.#comparisons = [];
    return found;
  }

  /**
   * Whether too many pages since the scan last advanced had no anchor (an unchanged record that was read before). The newest page is then
   * requested again, and accepted even without one.
   */
  mustReadBlind(): boolean {
    return this.#failures >= this.#maxFailures;
  }
}

function withKeys(
  records: PageRecords,
  keys: { has(key: string): boolean; readonly size: number },
): readonly KeyedRecord[] {
  if (keys.size === 0) return [];
  return records
    .all()
    .filter(
      (record): record is KeyedRecord =>
        record.key !== undefined && keys.has(record.key) && isJsonObject(record.json),
    );
}

/** Nesting depth at which values are compared as a whole and not field by field. */
const MAX_DEPTH = 8;

/**
 * Returns the differing fields as JSON Pointers without array indexes. The parents of a differing field are included: `/images` if
 * `/images/url` differs.
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
        compare(pointer + pointerStep(name), getOwn(a, name), getOwn(b, name), depth + 1);
      }
    }
  };
  compare('', one, other, 0);
  return found;
}

/** Result of comparing two versions of a record. */
interface Comparison {
  readonly key: string;
  /**
   * Fields in which two versions of the record differ, as JSON Pointers without array indexes. The parents of a differing field are
   * included: `/images` if `/images/url` differs.
   */
  readonly differing: ReadonlySet<string>;
}

/**
 * Minimum fraction of the compared pairs (the same record in two responses) in which a field must differ, to be reported as a field that
 * differs in every response.
 */
const LEAST_SHARE = 1 / 4;
/**
 * Minimum number of records in which a field has to differ before it is reported. The name of a field that only one record has may be a key
 * of a map, and so be personal data.
 */
const LEAST_RECORDS = 2;

/**
 * Returns the fields that differ in at least `LEAST_SHARE` of the comparisons, and in at least `LEAST_RECORDS` records. If an object and
 * one of its fields both qualify, only the field is returned.
 */
function commonFields(comparisons: readonly Comparison[]): readonly string[] {
  const pointers = new Set(comparisons.flatMap(({ differing }) => [...differing]));
  const common = [...pointers].filter((pointer) => {
    const found = comparisons.filter(({ differing }) => differing.has(pointer));
    const isOften = found.length >= LEAST_SHARE * comparisons.length;
    return isOften && new Set(found.map(({ key }) => key)).size >= LEAST_RECORDS;
  });
  return common.filter((each) => !common.some((other) => other.startsWith(`${each}/`))).sort();
}
