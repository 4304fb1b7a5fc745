// Removes volatile fields from records before they are compared.

import { pointerNames, canonicalJson, isJsonObject, setOwn } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** The volatile fields of a list, which differ from response to response although nothing has happened to the record. */
export interface VolatileFields {
  /** JSON Pointers to the volatile fields. */
  readonly pointers: readonly string[];
  /** Returns the value without its volatile fields (those that differ from response to response); the same object if it has none. */
  readonly without: (value: JsonValue) => JsonValue;
  /** Whether two records are equal except for their volatile fields. */
  readonly isSame: (one: JsonObject, other: JsonObject) => boolean;
}

/**
 * Creates the volatile fields of one list from JSON Pointers without array indexes:
 *
 * - If a value on the path is an array, the rest of the pointer applies to each of its elements.
 * - The value at the end of a pointer is ignored, whatever it is. So a record with null there equals one without the field.
 */
export function volatileFields(pointers: readonly string[]): VolatileFields {
  const root: Node = new Map();
  for (const pointer of pointers) {
    let node = root;
    for (const name of pointerNames(pointer)) {
      const next: Node = node.get(name) ?? new Map<string, Node>();
      node.set(name, next);
      node = next;
    }
    node.set(END, node);
  }
  // Without volatile fields no record is parsed or traversed; this function may be called for every record of a page.
  const without = (value: JsonValue) => (root.size === 0 ? value : withoutVolatile(value, root));
  return {
    pointers,
    without,
    isSame: (one, other) => canonicalJson(without(one)) === canonicalJson(without(other)),
  };
}

/**
 * Node in the tree of the JSON Pointers of all volatile fields: its child nodes by field name, and an entry {@link END} if a pointer ends
 * here.
 */
type Node = Map<string | typeof END, Node>;
const END = Symbol('a volatile field');

/** Nesting depth of arrays up to which volatile fields are removed. */
const MAX_NESTED = 100;

function withoutVolatile(value: JsonValue, node: Node, nested = 0): JsonValue {
  if (Array.isArray(value)) {
    if (nested === MAX_NESTED) return value;
    const elements = value.map((each) => withoutVolatile(each, node, nested + 1));
    return elements.every((each, place) => each === value[place]) ? value : elements;
  }
  return isJsonObject(value) ? objectWithoutVolatile(value, node) : value;
}

function objectWithoutVolatile(object: JsonObject, node: Node): JsonObject {
  const remaining: JsonObject = {};
  let isWhole = true;
  for (const name of Object.keys(object)) {
    const value = object[name]!;
    const next = node.get(name);
    const rest =
      next === undefined ? value : next.has(END) ? undefined : withoutVolatile(value, next);
    isWhole &&= rest === value;
    if (rest !== undefined) setOwn(remaining, name, rest);
  }
  return isWhole ? object : remaining;
}
