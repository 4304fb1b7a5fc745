import { canonicalJson, isJsonObject, JsonNumber } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/**
 * The paths at which two images of a record differ, sorted: `total_price`, `tracking.company_name`, `fulfillment_info[F-12].status`.
 * Elements of an array with an identity are matched by it, whatever their places (an element that is new or gone is a path; a mere change
 * of places is the array's own path); other arrays of objects are matched by place, and arrays of plain values as a whole.
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
        compare(path === '' ? name : `${path}.${name}`, own(a, name), own(b, name));
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
      if (stayed.some((id, place) => id !== order[place])) paths.push(path);
      return;
    }
    if (a === undefined || b === undefined || canonicalJson(a) !== canonicalJson(b)) {
      paths.push(path);
    }
  };
  compare('', before, after);
  return [...new Set(paths)].sort(); // names with dots of their own can give one path twice
}

function own(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Which field tells the elements of an array apart, by the array's name in its record. */
export type Identities = Readonly<Record<string, string>>;

/**
 * The elements of an array by their identity, in order: the text of `field`, with `#2`, `#3` and so
 * on where several share it; an element without it is known by its place alone (`#1` is the first).
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
    while (elements.has(id)); // an identity may itself look like a count or a place
    counts.set(text, count);
    elements.set(id, element);
  });
  return elements;
}

function textOf(value: JsonValue | undefined): string | undefined {
  if (value instanceof JsonNumber) return value.text;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}
