import { readFileSync } from 'node:fs';
import type { JsonValue } from '../json/json.ts';

/** An Avro record type with its fields in order. */
export interface RecordSchema {
  readonly type: 'record';
  readonly name: string;
  readonly namespace?: string;
  readonly doc?: string;
  readonly fields: readonly FieldSchema[];
}

/** A field of an Avro record type. */
export interface FieldSchema {
  readonly name: string;
  readonly type: AvroType;
  readonly default?: unknown;
  readonly doc?: string;
  /** The field's name in the API's JSON, if it differs from `name`. */
  readonly json?: string;
  /** Media type of a string field's text. `application/json` marks a field that holds any JSON value as text. */
  readonly contentMediaType?: string;
}

/** An Avro type: the name of a primitive or record type, a union, or a type with attributes. */
export type AvroType =
  string | readonly AvroType[] | RecordSchema | ArraySchema | MapSchema | LogicalSchema;

/** An Avro type: an array of values of one type. */
export interface ArraySchema {
  readonly type: 'array';
  readonly items: AvroType;
}

/** An Avro type: a map from strings to values of one type. */
export interface MapSchema {
  readonly type: 'map';
  readonly values: AvroType;
}

/** A primitive Avro type with a logical type, such as a date. */
export interface LogicalSchema {
  readonly type: 'bytes' | 'int' | 'long';
  readonly logicalType: string;
  readonly precision?: number;
  readonly scale?: number;
  /**
   * Whether a `timestamp-millis` field preserves the original text of every time. Default false: a UTC time with a precision of at most ms
   * is stored as an instant only. So `2024-05-01T12:00Z` is decoded as `2024-05-01T12:00:00.000Z`.
   */
  readonly exact?: boolean;
}

export function jsonName({ json, name }: FieldSchema): string {
  return json ?? name;
}

/** Returns the type of the field with this name in the API's JSON; undefined if `type` is no record with such a field. */
export function fieldType(type: AvroType | undefined, name: string): AvroType | undefined {
  if (typeof type !== 'object' || !('fields' in type)) return undefined;
  return type.fields.find((field) => jsonName(field) === name)?.type;
}

/** Returns the first type of a union that is not null. Any other type is returned as it is. */
export function withoutNull(type: AvroType): AvroType {
  return isUnion(type) ? withoutNull(type.find((each) => each !== 'null') ?? 'null') : type;
}

export function isUnion(type: AvroType): type is readonly AvroType[] {
  return Array.isArray(type);
}

/** Returns the type after replacing each record type in it, also within unions and arrays, by the result of `change`. */
export function withRecords(
  type: AvroType,
  change: (record: RecordSchema) => RecordSchema,
): AvroType {
  if (typeof type === 'string') return type;
  if (isUnion(type)) return type.map((branch) => withRecords(branch, change));
  if ('items' in type) return { ...type, items: withRecords(type.items, change) };
  return 'fields' in type ? change(type) : type;
}

/**
 * Largest integer that avsc decodes exactly from an Avro long; `MIN_LONG` is the smallest. avsc computes in doubles: it rejects the largest
 * safe integer, and decodes integers below -2^52 incorrectly, without an error.
 */
const MAX_LONG = Number.MAX_SAFE_INTEGER - 1;
// Zigzag encoding stores a negative `n` as `-2n - 1`, which is beyond the safe integers for a smaller `n`.
const MIN_LONG = -(2 ** 52);

export const isInteger = (value: JsonValue, least: number, most: number): boolean =>
  Number.isInteger(value) &&
  (value as number) >= least &&
  (value as number) <= most &&
  !Object.is(value, -0);

export const isLong = (value: JsonValue): boolean => isInteger(value, MIN_LONG, MAX_LONG);

export const isDouble = (value: JsonValue): boolean =>
  Number.isFinite(value) && !Object.is(value, -0);

/** Reads a schema from an `.avsc` file of this package. */
export function loadSchema(file: URL): RecordSchema {
  return JSON.parse(readFileSync(file, 'utf8')) as RecordSchema;
}
