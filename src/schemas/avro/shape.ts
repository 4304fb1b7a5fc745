import { isDouble, isLong, type AvroType } from './avro-schema.ts';
import { dateDays, exactMillis } from './instant.ts';
import { JsonNumber, type JsonObject, type JsonValue } from '../json/json.ts';

/** Inferred Avro type of a field; record types in it have no names yet. */
export type Shape =
  | TypedShape
  /** The field holds JSON text, because its values have too many fields or levels to be stored as typed fields. */
  | { readonly kind: 'text' };

export type TypedShape =
  | { readonly kind: 'plain'; readonly type: AvroType }
  | { readonly kind: 'array'; readonly items: TypedShape }
  | { readonly kind: 'record'; readonly members: ReadonlyMap<string, Shape> };

/** Maximum depth of nested objects and arrays that become types, the record itself being 1. Deeper objects and arrays become JSON text. */
const MAX_DEPTH = 10;

/**
 * Maximum number of fields, including nested ones, inferred for an object within a record. An object with more fields is probably a map
 * with arbitrary keys, and it or its largest member becomes JSON text (see {@link shapeOf}).
 */
export const MAX_PART_FIELDS = 150;

/** Maximum length of a JSON key that becomes a field, in UTF-16 code units. */
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
 * Infers the shape (the type of a field) that fits the most values. Values that no type represents, such as null, empty objects and -0, are
 * ignored. Returns undefined if no value shows a type. The order of the values doesn't matter.
 *
 * - Numbers become doubles, as no registry allows a long to become a double later.
 * - Strings become instants if every value has the form of `instantText`, and dates if every value is a date.
 * - An object with more than {@link MAX_PART_FIELDS} fields, nested ones included, becomes JSON text. If one member has more than half of
 *   the fields and the rest are few enough, only this member becomes JSON text.
 * - An object or array deeper than 10 levels becomes JSON text. So does an array whose items would be JSON text.
 *
 * @param depth Number of objects and arrays that enclose the values, including the record itself.
 */
export function shapeOf(values: readonly JsonValue[], depth: number): Shape | undefined {
  return firstShape(values, (kind, same) => {
    if (kind === 'object') return recordShape(same as readonly JsonObject[], depth + 1);
    if (kind === 'array') return arrayShape(same as readonly (readonly JsonValue[])[], depth + 1);
    if (kind === 'string') return stringShape(values);
    return kind === 'number' ? DOUBLE : BOOLEAN;
  });
}

/**
 * Infers the shape of a key field from the most frequent kind of its values: strings, numbers or booleans. Numbers become `long` if all of
 * them are longs, otherwise `double`. Undefined if there are no such values.
 */
export function keyShape(values: readonly JsonValue[]): Shape | undefined {
  return firstShape(values, (kind, same) => {
    if (kind === 'string') return STRING;
    if (kind === 'number') return same.every(isLong) ? LONG : DOUBLE;
    return kind === 'boolean' ? BOOLEAN : undefined;
  });
}

export function fieldsWithin(shape: Shape): number {
  if (shape.kind === 'array') return fieldsWithin(shape.items);
  if (shape.kind !== 'record') return 0;
  let count = shape.members.size;
  for (const member of shape.members.values()) count += fieldsWithin(member);
  return count;
}

const KINDS = ['object', 'array', 'string', 'number', 'boolean'] as const;
type ValueKind = (typeof KINDS)[number];

/**
 * Groups the values by kind (object, array, string, number, boolean), and returns the shape of the largest group for which `shapeOfKind`
 * infers one; undefined if there is no such group.
 */
function firstShape(
  values: readonly JsonValue[],
  shapeOfKind: (kind: ValueKind, same: readonly JsonValue[]) => Shape | undefined,
): Shape | undefined {
  const kinds = values.map(kindOf);
  const groups = KINDS.map((kind) => {
    return { kind, same: values.filter((_, nth) => kinds[nth] === kind) };
  });
  // The sort is stable: groups of equal size stay in the order of KINDS.
  for (const { kind, same } of groups.sort((a, b) => b.same.length - a.same.length)) {
    const shape = same.length > 0 ? shapeOfKind(kind, same) : undefined;
    if (shape) return shape;
  }
  return undefined;
}

/** Whether {@link shapeOf} takes a value into account. That does not mean that the value shows a type: an array of nulls does not. */
export function isTypable(value: JsonValue): boolean {
  return kindOf(value) !== undefined;
}

/** Returns the kind of a value; undefined for values that {@link shapeOf} ignores. */
function kindOf(value: JsonValue): ValueKind | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? 'string' : undefined;
  if (typeof value === 'number') return isDouble(value) ? 'number' : undefined;
  if (typeof value === 'boolean') return 'boolean';
  if (value === null || value instanceof JsonNumber) return undefined;
  if (Array.isArray(value)) return value.length > 0 ? 'array' : undefined;
  return Object.keys(value).length > 0 ? 'object' : undefined;
}

function stringShape(values: readonly JsonValue[]): Shape {
  const canAll = (parse: (text: string) => number) =>
    values.every((value) => typeof value === 'string' && !Number.isNaN(parse(value)));
  if (canAll(exactMillis)) return INSTANT;
  return canAll(dateDays) ? DATE : STRING;
}

function arrayShape(arrays: readonly (readonly JsonValue[])[], depth: number): Shape | undefined {
  if (depth > MAX_DEPTH) return TEXT;
  const items = shapeOf(
    arrays.flat().filter((item) => item !== null),
    depth,
  );
  if (items?.kind === 'text') return TEXT;
  return items && { kind: 'array', items };
}

function recordShape(objects: readonly JsonObject[], depth: number): Shape | undefined {
  if (depth > MAX_DEPTH) return TEXT;
  const values = new Map<string, JsonValue[]>();
  for (const object of objects)
    for (const key of Object.keys(object)) noteValue(values, key, object[key]);
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

/** Returns the key of the member that has more than half of an object's fields, nested ones included; undefined if no member has. */
function partWithMost(members: ReadonlyMap<string, Shape>): string | undefined {
  const half = fieldsWithin({ kind: 'record', members }) / 2;
  for (const [key, shape] of members) if (fieldsWithin(shape) > half) return key;
  return undefined;
}

/**
 * Adds `value` to the values collected for the JSON key `key`; the type of a field is inferred from them. Ignores null, undefined, and a
 * key that can't become a field.
 */
export function noteValue(
  values: Map<string, JsonValue[]>,
  key: string,
  value: JsonValue | undefined,
): void {
  if (value === null || value === undefined) return;
  const known = values.get(key);
  if (known) known.push(value);
  // Avro can't represent lone surrogates.
  else if (key.length <= MAX_KEY_LENGTH && key.isWellFormed()) values.set(key, [value]);
}
