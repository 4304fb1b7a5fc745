// The part of Avro's schema language that record images are made of, and which numbers its types hold.

import { readFileSync } from 'node:fs';
import type { JsonValue } from '../json/json.ts';

/** A record: named, its fields in order. */
export interface RecordSchema {
  readonly type: 'record';
  readonly name: string;
  readonly namespace?: string;
  readonly doc?: string;
  readonly fields: readonly FieldSchema[];
}

/** A field of a record. */
export interface FieldSchema {
  readonly name: string;
  readonly type: AvroType;
  readonly default?: unknown;
  readonly doc?: string;
  /** The name in the API's JSON, where it is another one than `name`. */
  readonly json?: string;
  /** `application/json`: a string that holds any JSON value as its text. */
  readonly contentMediaType?: string;
}

/** A type: by its name, a union, or with attributes. */
export type AvroType =
  string | readonly AvroType[] | RecordSchema | ArraySchema | MapSchema | LogicalSchema;

/** An array of values of one type. */
export interface ArraySchema {
  readonly type: 'array';
  readonly items: AvroType;
}

/** Values of one type by text. */
export interface MapSchema {
  readonly type: 'map';
  readonly values: AvroType;
}

/** A primitive type that stands for something else. */
export interface LogicalSchema {
  readonly type: 'bytes' | 'int' | 'long';
  readonly logicalType: string;
  readonly precision?: number;
  readonly scale?: number;
  /** Of `timestamp-millis`: not the instant counts but its very text, in whatever form it came. */
  readonly exact?: boolean;
}

/** The name of a field in the API's JSON. */
export function jsonName({ json, name }: FieldSchema): string {
  return json ?? name;
}

export function isUnion(type: AvroType): type is readonly AvroType[] {
  return Array.isArray(type);
}

/**
 * The longs that avsc reads as they were written. It counts in doubles: it takes one less than the safe
 * integers, and gets wrong, without a word, what is below -2^52 (of which Avro writes `-2n - 1`).
 */
const MAX_LONG = Number.MAX_SAFE_INTEGER - 1;
const MIN_LONG = -(2 ** 52);

export const isInteger = (value: JsonValue, least: number, most: number): boolean =>
  Number.isInteger(value) &&
  (value as number) >= least &&
  (value as number) <= most &&
  !Object.is(value, -0);

/** Whether a field of type `long` holds the value. */
export const isLong = (value: JsonValue): boolean => isInteger(value, MIN_LONG, MAX_LONG);

/** Whether a field of type `double` holds the value. */
export const isDouble = (value: JsonValue): boolean =>
  Number.isFinite(value) && !Object.is(value, -0);

/** A schema that lies beside the code that asks for it. */
export function loadSchema(file: URL): RecordSchema {
  return JSON.parse(readFileSync(file, 'utf8')) as RecordSchema;
}
