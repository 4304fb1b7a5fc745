// The type that a field needs for the values that were seen of it.

import type { AvroType } from './avro-schema.ts';
import { isDouble, isLong } from './avro-schema.ts';
import { dateDays, isInstantText } from './instant.ts';
import { JsonNumber } from '../json/json.ts';
import type { JsonValue } from '../json/json.ts';

/** What a field must be to hold the values that were seen of it; records as yet without names. */
export type Shape =
  | TypedShape
  /** JSON text, in which anything fits. */
  | { readonly kind: 'text' };

export type TypedShape =
  | { readonly kind: 'plain'; readonly type: AvroType }
  | { readonly kind: 'array'; readonly items: TypedShape }
  | { readonly kind: 'record'; readonly members: ReadonlyMap<string, Shape> };

/** Values by the key of an object that they were seen under. */
type ValuesByKey = ReadonlyMap<string, readonly JsonValue[]>;

/** Levels of objects and arrays that become types of their own, the record itself being the first. */
const MAX_DEPTH = 10;

/** Fields in a part of a record, with those of its own parts: above, it's a map in disguise. */
export const MAX_PART_FIELDS = 150;

/** Longest key that becomes a field, in UTF-16 units. */
const MAX_KEY_LENGTH = 200;

const TEXT: Shape = { kind: 'text' };
const BOOLEAN: Shape = { kind: 'plain', type: 'boolean' };
const LONG: Shape = { kind: 'plain', type: 'long' };
const DOUBLE: Shape = { kind: 'plain', type: 'double' };
const STRING: Shape = { kind: 'plain', type: 'string' };
const DATE: Shape = { kind: 'plain', type: { type: 'int', logicalType: 'date' } };
const INSTANT: Shape = {
  kind: 'plain',
  type: { type: 'long', logicalType: 'timestamp-millis', exact: true },
};

/**
 * The shape of most of the values, which may be of several; their order doesn't matter. A value
 * speaks for one only where that would hold it: null, empty arrays and objects, numbers beyond a
 * double, -0, and strings with half a surrogate pair speak for none.
 *
 * - Numbers are doubles, for no registry lets a long become one later.
 * - Strings are instants or dates where every one of the values is one that is rebuilt to the letter.
 * - An object with more than 150 fields within is JSON text, for it's likely a map in disguise; if
 *   one part has most of them, that part alone is. So is what lies more than 10 levels deep, and an
 *   array of any such.
 *
 * @param depth Of objects and arrays around the values, the record itself being 1.
 * @returns undefined where no value speaks for any.
 */
export function shapeOf(values: readonly JsonValue[], depth: number): Shape | undefined {
  return firstShape(values, (kind, same) => {
    switch (kind) {
      case 'object':
        return recordShape(same as readonly Record<string, JsonValue>[], depth + 1);
      case 'array':
        return arrayShape(same as readonly (readonly JsonValue[])[], depth + 1);
      case 'string':
        return stringShape(values);
      case 'number':
        return DOUBLE;
      case 'boolean':
        return BOOLEAN;
    }
  });
}

/** The shape of a field of the key: text stays text, whole numbers are longs. */
export function keyShape(values: readonly JsonValue[]): Shape | undefined {
  return firstShape(values, (kind, same) => {
    if (kind === 'string') return STRING;
    if (kind === 'number') return same.every(isLong) ? LONG : DOUBLE;
    return kind === 'boolean' ? BOOLEAN : undefined;
  });
}

/** How many fields it takes within, all levels together. */
export function fieldsWithin(shape: Shape): number {
  if (shape.kind === 'array') return fieldsWithin(shape.items);
  if (shape.kind !== 'record') return 0;
  let count = shape.members.size;
  for (const member of shape.members.values()) count += fieldsWithin(member);
  return count;
}

/** Whether a member of this key can be a field: Avro can't spell half a surrogate pair. */
function canBeField(key: string): boolean {
  return key.length <= MAX_KEY_LENGTH && key.isWellFormed();
}

const KINDS = ['object', 'array', 'string', 'number', 'boolean'] as const;
type ValueKind = (typeof KINDS)[number];

/** Asks for the shape of the values of one kind, of the most frequent first. */
function firstShape(
  values: readonly JsonValue[],
  shapeOfKind: (kind: ValueKind, same: readonly JsonValue[]) => Shape | undefined,
): Shape | undefined {
  const byKind = new Map<ValueKind, JsonValue[]>(KINDS.map((kind) => [kind, []]));
  for (const value of values) {
    const kind = kindOf(value);
    if (kind) byKind.get(kind)!.push(value);
  }
  const ranked = [...byKind].sort(([, a], [, b]) => b.length - a.length); // a stable sort: by KINDS
  for (const [kind, same] of ranked) {
    const shape = same.length > 0 ? shapeOfKind(kind, same) : undefined;
    if (shape) return shape;
  }
  return undefined;
}

/** Whether a field can be made of a value that nothing else was seen beside: see {@link shapeOf}. */
export function speaksForAny(value: JsonValue): boolean {
  return kindOf(value) !== undefined;
}

/** What the value speaks for; undefined for nothing. */
function kindOf(value: JsonValue): ValueKind | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? 'string' : undefined;
  if (typeof value === 'number') return isDouble(value) ? 'number' : undefined;
  if (typeof value === 'boolean') return 'boolean';
  if (value === null || value instanceof JsonNumber) return undefined;
  if (Array.isArray(value)) return value.length > 0 ? 'array' : undefined;
  return Object.keys(value).length > 0 ? 'object' : undefined;
}

function stringShape(values: readonly JsonValue[]): Shape {
  if (values.every((value) => isString(value) && isInstantText(value))) return INSTANT;
  const isDate = (value: JsonValue) => isString(value) && !Number.isNaN(dateDays(value));
  return values.every(isDate) ? DATE : STRING;
}

const isString = (value: JsonValue): value is string => typeof value === 'string';

function arrayShape(arrays: readonly (readonly JsonValue[])[], depth: number): Shape | undefined {
  if (depth > MAX_DEPTH) return TEXT;
  const items = shapeOf(
    arrays.flat().filter((item) => item !== null),
    depth,
  );
  if (items?.kind === 'text') return TEXT;
  return items && { kind: 'array', items };
}

function recordShape(
  objects: readonly Record<string, JsonValue>[],
  depth: number,
): Shape | undefined {
  if (depth > MAX_DEPTH) return TEXT;
  const values = valuesByKey(objects);
  if (values.size > MAX_PART_FIELDS) return TEXT;
  const members = new Map<string, Shape>();
  for (const key of [...values.keys()].sort()) {
    const shape = shapeOf(values.get(key)!, depth);
    if (shape) members.set(key, shape);
  }
  const most = partWithMost(members);
  if (most !== undefined && isTooLarge(members)) members.set(most, TEXT);
  if (isTooLarge(members)) return TEXT;
  return members.size > 0 ? { kind: 'record', members } : undefined;
}

function isTooLarge(members: ReadonlyMap<string, Shape>): boolean {
  return fieldsWithin({ kind: 'record', members }) > MAX_PART_FIELDS;
}

/** The key of the part that has more fields than all else together; undefined if none has. */
function partWithMost(members: ReadonlyMap<string, Shape>): string | undefined {
  const half = fieldsWithin({ kind: 'record', members }) / 2;
  for (const [key, shape] of members) if (fieldsWithin(shape) > half) return key;
  return undefined;
}

function valuesByKey(objects: readonly Record<string, JsonValue>[]): ValuesByKey {
  const values = new Map<string, JsonValue[]>();
  for (const object of objects) {
    for (const key of Object.keys(object)) noteValue(values, key, object[key]);
  }
  return values;
}

/** Adds a value to those of its key, where there is one and it can be a field. */
export function noteValue(
  values: Map<string, JsonValue[]>,
  key: string,
  value: JsonValue | undefined,
): void {
  if (value === null || value === undefined) return;
  const known = values.get(key);
  if (known) known.push(value);
  else if (canBeField(key)) values.set(key, [value]);
}
