// Computes the paths of the fields in which two versions of a record differ.

import { canonicalJson, getOwn, isJsonObject, JsonNumber } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/**
 * Returns the sorted paths of the fields in which two versions of a record differ, such as `price`, `address.city` or `lines[L-12].status`.
 * Objects in an array are matched by the field that `identities` names for the array, or by index if it names none. Arrays of plain values
 * are compared as a whole.
 */
export function changedPaths(
  before: JsonObject,
  after: JsonObject,
  identities: Identities = {},
): string[] {
  const paths: string[] = [];

  const compare = (path: string, a: JsonValue | undefined, b: JsonValue | undefined): void => {
    if (Object.is(a, b)) return;
    if (isJsonObject(a) && isJsonObject(b)) {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
        compare(path === '' ? name : `${path}.${name}`, getOwn(a, name), getOwn(b, name));
      }
      return;
    }
    if (Array.isArray(a) && Array.isArray(b) && [...a, ...b].some(isJsonObject)) {
      const identity = Object.hasOwn(identities, path) ? identities[path] : undefined;
      if (identity === undefined) {
        for (let place = 0; place < Math.max(a.length, b.length); place++) {
          compare(`${path}[${place}]`, a[place], b[place]);
        }
        return;
      }
      const [was, is] = [byIdentity(a, identity), byIdentity(b, identity)];
      for (const id of new Set([...was.keys(), ...is.keys()])) {
        compare(`${path}[${id}]`, was.get(id), is.get(id));
      }
      const stayed = [...was.keys()].filter((id) => is.has(id));
      const order = [...is.keys()].filter((id) => was.has(id));
      if (stayed.some((id, place) => id !== order[place])) paths.push(path); // the order differs
      return;
    }
    if (a === undefined || b === undefined || canonicalJson(a) !== canonicalJson(b)) {
      paths.push(path);
    }
  };
  compare('', before, after);
  return [...new Set(paths)].sort(); // field names that contain dots can produce a path twice
}

/** Maps the path of an array in a record to the name of the field that identifies the array's elements. */
export type Identities = Readonly<Record<string, string>>;

/**
 * Returns an array's elements by identity: the value of the element's field `field`, if it is a string or number. Otherwise the identity
 * is the element's position, such as `#1` for the first. A second element with the identity `A` gets `A#2`.
 */
export function byIdentity(
  array: readonly JsonValue[],
  field: string,
): ReadonlyMap<string, JsonValue> {
  const elements = new Map<string, JsonValue>();
  const counts = new Map<string, number>();
  array.forEach((element, place) => {
    const text = textOf(isJsonObject(element) ? element[field] : undefined) ?? `#${place + 1}`;
    let count = counts.get(text) ?? 0;
    let id: string;
    do id = ++count === 1 ? text : `${text}#${count}`;
    while (elements.has(id)); // an identity may itself end like a count, or look like a number in the array
    counts.set(text, count);
    elements.set(id, element);
  });
  return elements;
}

function textOf(value: JsonValue | undefined): string | undefined {
  if (value instanceof JsonNumber) return value.text;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}
