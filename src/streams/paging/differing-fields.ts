import { canonicalJson, isJsonObject, pointerStep } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** Deeper values are held against each other whole. */
const MAX_DEPTH = 8;

/**
 * The fields in which two readings of one record differ, as JSON Pointers without places: an array on the
 * way means any of its elements. With all that lead there: `/images` where `/images/url` differs.
 */
export function differingFields(one: JsonObject, other: JsonObject): ReadonlySet<string> {
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
export function commonFields(differing: readonly ReadonlySet<string>[]): readonly string[] {
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
