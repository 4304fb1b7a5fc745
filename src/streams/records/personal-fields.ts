import { createHmac, createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { canonicalJson, isJsonObject, setOwn } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** What becomes of a personal field; the first is the strictest. */
export const WAYS = ['drop', 'mask', 'hmac'] as const;
/** Left out, replaced by {@link MASK}, or by a keyed hash that keeps equal values equal. */
export type Way = (typeof WAYS)[number];

export interface PersonalField {
  /** Names on the way to it; at least one. An array on the way means each of its elements. */
  readonly path: readonly string[];
  readonly way: Way;
}

/** What a masked value becomes, whatever it was. */
export const MASK = '***';
/** What stands before the 64 hexadecimal digits of an HMAC. */
const HMAC_PREFIX = 'hmac-sha256:';

/** Hides the personal fields of a list's records. What has none of them is given back as it is. */
export interface PersonalFields {
  /** Of an element of `data`, as the API sent it. */
  readonly hide: (element: JsonValue) => JsonValue;
  /** Of a record that was stored, maybe before these fields were to be hidden: what looks hidden already is left as it is. */
  readonly hideStored: (record: JsonObject) => JsonObject;
}

/**
 * Personal fields of one list. Null stays null, and what is absent stays absent. An array at the end
 * of a path is dropped as a whole, else each of its elements is replaced; an object there is
 * replaced as a whole, so that not even its names are left. A value on the way that has no fields,
 * such as a text where an object was expected, is treated as if it were the field, in the strictest of
 * the ways that lead through it; where it can't be left out it becomes null.
 *
 * The HMAC is HMAC-SHA-256, over the canonical JSON text of the value (`"jane@example.com"`, with the
 * quotes) in UTF-8. The field's name is no part of it: equal values are equal across fields and lists.
 *
 * @param fields one or more.
 * @param hmacKey needed where a way is `hmac`.
 * @throws TypeError without a field, for a path without a name, and for an HMAC without a key.
 */
export function personalFields(
  fields: readonly PersonalField[],
  hmacKey?: () => string,
): PersonalFields {
  if (fields.length === 0) throw new TypeError('no field is to be hidden');
  if (fields.some(({ path }) => path.length === 0)) throw new TypeError('a path names no field');
  const root = treeOf(fields);
  const needsKey = fields.some(({ way }) => way === 'hmac');
  if (needsKey && !hmacKey) throw new TypeError('an HMAC needs a key');
  const key = needsKey ? createSecretKey(Buffer.from(hmacKey!())) : undefined;
  return {
    hide: (element) => hide(element, root, { key, isStored: false }) ?? null,
    hideStored: (record) => hide(record, root, { key, isStored: true }) as JsonObject,
  };
}

/** Names that lead to fields. */
interface Node {
  /** What becomes of what is here; undefined on the way. */
  way: Way | undefined;
  /** Of all that is to be hidden here and further in. */
  strictest: Way;
  readonly names: Map<string, Node>;
}

const newNode = (): Node => ({ way: undefined, strictest: 'hmac', names: new Map() });

const stricter = (one: Way, other: Way): Way =>
  WAYS.indexOf(one) < WAYS.indexOf(other) ? one : other;

function treeOf(fields: readonly PersonalField[]): Node {
  const root = newNode();
  for (const { path, way } of fields) {
    let node = root;
    node.strictest = stricter(node.strictest, way);
    for (const name of path) {
      const next = node.names.get(name) ?? newNode();
      node.names.set(name, next);
      next.strictest = stricter(next.strictest, way);
      node = next;
    }
    node.way = stricter(node.way ?? way, way);
  }
  return root;
}

interface Means {
  readonly key: KeyObject | undefined;
  readonly isStored: boolean;
}

/** Arrays in arrays that are looked through: one that is deeper is hidden as a whole. */
const MAX_NESTED = 100;

/** The value as it may be shown: itself if nothing in it is hidden, undefined if it's left out. */
function hide(value: JsonValue, node: Node, means: Means, nested = 0): JsonValue | undefined {
  if (node.way === 'drop') return undefined;
  if (value === null) return null;
  if (Array.isArray(value) && nested < MAX_NESTED) {
    const elements = value.map((each) => hide(each, node, means, nested + 1) ?? null);
    return elements.every((each, place) => each === value[place]) ? value : elements;
  }
  if (node.way === undefined && isJsonObject(value)) return hideWithin(value, node, means);
  return replaced(value, node.way ?? node.strictest, means);
}

function hideWithin(object: JsonObject, node: Node, means: Means): JsonObject {
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

function replaced(value: JsonValue, way: Way, { key, isStored }: Means): JsonValue | undefined {
  if (way === 'drop') return undefined;
  if (way === 'mask') return MASK;
  const looksHidden = value === MASK || (typeof value === 'string' && HMAC.test(value));
  if (isStored && looksHidden) return value;
  return HMAC_PREFIX + createHmac('sha256', key!).update(canonicalJson(value)).digest('hex');
}
