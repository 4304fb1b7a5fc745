// Hides the personal fields of a list's records.

import { createHmac, createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { canonicalJson, getOwn, isJsonObject, setOwn } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** Methods of hiding a personal field, the strictest first. */
export const HIDING_METHODS = ['drop', 'mask', 'hmac'] as const;
/**
 * Method of hiding a personal field. `drop`: the field is left out. `mask`: the value is replaced by {@link MASK}. `hmac`: the value is
 * replaced by a keyed hash; equal values have equal hashes.
 */
export type HidingMethod = (typeof HIDING_METHODS)[number];

/** A personal field of a list's records, and the method of hiding it. */
export interface PersonalField {
  /**
   * Names of the nested fields that lead to the personal field, the outermost first. If a value on the path is an array, the rest of the
   * path applies to each of its elements.
   */
  readonly path: readonly string[];
  readonly method: HidingMethod;
}

export const MASK = '***';
/** Prefix of a value hidden with `hmac`. The hash follows it in hexadecimal. */
const HMAC_PREFIX = 'hmac-sha256:';

/** Functions that hide personal fields. They return the same object if it contains none. */
export interface PersonalFields {
  /** Hides the personal fields of an element as received from the API. */
  readonly hide: (element: JsonValue) => JsonValue;
  /**
   * Hides the personal fields of a stored record. With the method `hmac`, a value that is hidden already (a mask or a hash) is not changed.
   */
  readonly hideStored: (record: JsonObject) => JsonObject;
}

/**
 * Creates the functions that hide the personal fields of one list. An absent field stays absent. Null stays null, unless the method is
 * `drop`.
 *
 * - A personal field that is an array: `drop` drops the array as a whole, `mask` and `hmac` replace each of its elements.
 * - A personal field that is an object is dropped or replaced as a whole, so that its field names are hidden, too.
 * - A value on a path that is neither an object nor an array is hidden as if it were the personal field. If several paths lead through the
 *   value, the strictest method is used: `drop` before `mask` before `hmac`.
 *
 * The HMAC is HMAC-SHA-256 of the canonical JSON text of the value (`"jane@example.com"`, with the quotes) in UTF-8. The field's name is
 * not part of it: equal values have equal hashes across fields and lists.
 *
 * @param fields The personal fields, at least one.
 * @param hmacKey Returns the HMAC key. Required if a method is `hmac`.
 * @throws TypeError if `fields` is empty, a path is empty, or a method is `hmac` and `hmacKey` is missing.
 */
export function personalFields(
  fields: readonly PersonalField[],
  hmacKey?: () => string,
): PersonalFields {
  if (fields.length === 0) throw new TypeError('personalFields needs at least one field');
  if (fields.some(({ path }) => path.length === 0))
    throw new TypeError(
      'the path of a field with personal data is empty: it must be the path of a field of the record',
    );
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

/** A node in the tree of the paths of personal fields: a personal field, or a field on the path to one. */
interface Node {
  /** Method by which the value at this path is hidden. Undefined if the path only leads to a personal field. */
  way: HidingMethod | undefined;
  /** Strictest of the methods by which this value and the values nested in it are hidden. */
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

/** Nesting depth of arrays up to which elements are hidden one by one. A deeper array is hidden as a whole. */
const MAX_NESTED = 100;

/** Returns `value` with its personal fields hidden: the same value if it contains none, undefined if the value itself is dropped. */
function hide(
  value: JsonValue,
  node: Node,
  means: HidingContext,
  nested = 0,
): JsonValue | undefined {
  if (node.way === 'drop') return undefined;
  if (value === null) return null;
  if (Array.isArray(value) && nested < MAX_NESTED) {
    // A dropped element becomes null, so that the array keeps its length.
    const elements = value.map((each) => hide(each, node, means, nested + 1) ?? null);
    return elements.every((each, place) => each === value[place]) ? value : elements;
  }
  if (node.way === undefined && isJsonObject(value)) return hideWithin(value, node, means);
  return replacementOf(value, node.way ?? node.strictest, means);
}

function hideWithin(object: JsonObject, node: Node, means: HidingContext): JsonObject {
  const replacements = new Map<string, JsonValue | undefined>();
  for (const [name, next] of node.names) {
    const value = getOwn(object, name);
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
