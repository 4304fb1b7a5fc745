import { pointerNames, canonicalJson, isJsonObject, setOwn } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** Fields that differ from answer to answer although nothing has happened to their record. */
export interface VolatileFields {
  /** As JSON Pointers; empty where there are none. */
  readonly pointers: readonly string[];
  /** A value without them; itself if it has none of them. */
  readonly without: (value: JsonValue) => JsonValue;
  /** Whether two records are the same but for them. */
  readonly isSame: (one: JsonObject, other: JsonObject) => boolean;
}

/**
 * Volatile fields of one list, as JSON Pointers without places: an array on the way means each of its
 * elements. At the end of a pointer whatever is there is left out, and null and absent are the same there.
 * A value on the way that has no fields is left as it is: its changes are changes.
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
  // Where there are none, no record is gone through: each one of a page may be asked for.
  const without = (value: JsonValue) => (root.size === 0 ? value : left(value, root));
  return {
    pointers,
    without,
    isSame: (one, other) => canonicalJson(without(one)) === canonicalJson(without(other)),
  };
}

/** Names that lead to volatile fields, and {@link END} where one is. */
type Node = Map<string | typeof END, Node>;
const END = Symbol('a volatile field');

/** Arrays in arrays that are looked through; what is deeper is left as it is. */
const MAX_NESTED = 100;

function left(value: JsonValue, node: Node, nested = 0): JsonValue {
  if (Array.isArray(value)) {
    if (nested === MAX_NESTED) return value;
    const elements = value.map((each) => left(each, node, nested + 1));
    return elements.every((each, place) => each === value[place]) ? value : elements;
  }
  return isJsonObject(value) ? leftOf(value, node) : value;
}

function leftOf(object: JsonObject, node: Node): JsonObject {
  const kept: JsonObject = {};
  let isWhole = true;
  for (const name of Object.keys(object)) {
    const value = object[name]!;
    const next = node.get(name);
    const rest = next === undefined ? value : next.has(END) ? undefined : left(value, next);
    isWhole &&= rest === value;
    if (rest !== undefined) setOwn(kept, name, rest);
  }
  return isWhole ? object : kept;
}
