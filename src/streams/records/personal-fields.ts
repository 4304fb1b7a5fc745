// Hides the personal fields of a list's records.

import { createHmac, createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { canonicalJson, isJsonObject, setOwn } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** Methods of hiding a personal field, strictest first. */
export const HIDING_METHODS = ['drop', 'mask', 'hmac'] as const;
/**
 * How a personal field is hidden. `drop`: the field is left out. `mask`: replaced by {@link MASK}. `hmac`: replaced by a keyed hash, which
 * is equal for equal values.
 */
export type HidingMethod = (typeof HIDING_METHODS)[number];

/** A personal field of a list's records, and how to hide it. */
export interface PersonalField {
  /** Names of nested fields, the outermost first. They apply to every element of an array on the path. */
  readonly path: readonly string[];
  readonly method: HidingMethod;
}

export const MASK = '***';
/** Prefix of a value hidden by HMAC, before the hexadecimal digits of the hash. */
const HMAC_PREFIX = 'hmac-sha256:';

/** Returns the same object if it has no personal fields. */
export interface PersonalFields {
  /** Hides the personal fields of an element as the API sent it. */
  readonly hide: (element: JsonValue) => JsonValue;
  /** Hides the personal fields of a stored record; values that look hidden already are not changed. */
  readonly hideStored: (record: JsonObject) => JsonObject;
}

/**
 * Creates the functions that hide the personal fields of one list. Null stays null, and an absent field stays absent. An array at the end
 * of a path is dropped as a whole with `drop`, otherwise each of its elements is replaced; an object there is replaced as a whole, so that
 * its field names are hidden, too. A value on a path that has no fields, such as a string where an object was expected, is hidden as if it
 * were the field, by the strictest method of the paths through it; an array element that would be dropped becomes null.
 *
 * The HMAC is HMAC-SHA-256, over the canonical JSON text of the value (`"jane@example.com"`, with the quotes) in UTF-8. The field's name is
 * not part of it: equal values have equal hashes across fields and lists.
 *
 * @param fields One or more.
 * @param hmacKey Returns the key; required if a method is `hmac`.
 * @throws TypeError without fields, for an empty path, and for `hmac` without a key.
 */
export function personalFields(
  fields: readonly PersonalField[],
  hmacKey?: () => string,
): PersonalFields {
  if (fields.length === 0) throw new TypeError('personalFields needs at least one field');
  if (fields.some(({ path }) => path.length === 0))
    throw new TypeError('the path of a personal field is empty');
  const root = treeOf(fields);
  const needsKey = fields.some(({ method }) => method === 'hmac');
  if (needsKey && !hmacKey)
    throw new TypeError('a personal field with the method hmac needs hmacKey');
  const key = needsKey ? createSecretKey(Buffer.from(hmacKey!())) : undefined;
  return {
    hide: (element) => hide(element, root, { key, isStored: false }) ?? null,
    hideStored: (record) => hide(record, root, { key, isStored: true }) as JsonObject,
  };
}

/** A personal field, or a name on the path to one. */
interface Node {
  /** How to hide the value here; undefined for a name that is only on the path to one. */
  way: HidingMethod | undefined;
  /** Strictest method at and below this node. */
  strictest: HidingMethod;
  readonly names: Map<string, Node>;
}

const newNode = (): Node => ({ way: undefined, strictest: 'hmac', names: new Map() });

const stricter = (one: HidingMethod, other: HidingMethod): HidingMethod =>
  HIDING_METHODS.indexOf(one) < HIDING_METHODS.indexOf(other) ? one : other;

function treeOf(fields: readonly PersonalField[]): Node {
  const root = newNode();
  for (const { path, method } of fields) {
    let node = root;
    node.strictest = stricter(node.strictest, method);
    for (const name of path) {
      const next = node.names.get(name) ?? newNode();
      node.names.set(name, next);
      next.strictest = stricter(next.strictest, method);
      node = next;
    }
    node.way = stricter(node.way ?? method, method);
  }
  return root;
}

interface HidingContext {
  readonly key: KeyObject | undefined;
  readonly isStored: boolean;
}

/** Nesting depth up to which elements are hidden one by one. */
const MAX_NESTED = 100;

/** Returns the same value if it has no personal fields, undefined if it is dropped. */
function hide(
  value: JsonValue,
  node: Node,
  means: HidingContext,
  nested = 0,
): JsonValue | undefined {
  if (node.way === 'drop') return undefined;
  if (value === null) return null;
  if (Array.isArray(value) && nested < MAX_NESTED) {
    const elements = value.map((each) => hide(each, node, means, nested + 1) ?? null);
    return elements.every((each, place) => each === value[place]) ? value : elements;
  }
  if (node.way === undefined && isJsonObject(value)) return hideWithin(value, node, means);
  return replacementOf(value, node.way ?? node.strictest, means);
}

function hideWithin(object: JsonObject, node: Node, means: HidingContext): JsonObject {
  const replacements = new Map<string, JsonValue | undefined>();
  for (const [name, next] of node.names) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    const shown = value === undefined ? value : hide(value, next, means);
    if (shown !== value) replacements.set(name, shown);
  }
  if (replacements.size === 0) return object;
  const copy: JsonObject = {};
  for (const name of Object.keys(object)) {
    const shown = replacements.has(name) ? replacements.get(name) : object[name];
    if (shown !== undefined) setOwn(copy, name, shown);
  }
  return copy;
}

const HMAC = new RegExp(`^${HMAC_PREFIX}[0-9a-f]{64}$`);

function replacementOf(
  value: JsonValue,
  way: HidingMethod,
  { key, isStored }: HidingContext,
): JsonValue | undefined {
  if (way === 'drop') return undefined;
  if (way === 'mask') return MASK;
  const looksHidden = value === MASK || (typeof value === 'string' && HMAC.test(value));
  if (isStored && looksHidden) return value;
  return HMAC_PREFIX + createHmac('sha256', key!).update(canonicalJson(value)).digest('hex');
}
