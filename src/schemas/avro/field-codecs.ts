import type { AvroOutput } from './avro-output.ts';
import type { AvroType, LogicalSchema } from './avro-schema.ts';
import { decimalFormat } from './decimal.ts';
import { dateDays, dateText, INSTANT_TEXT_LENGTH, instantText } from './instant.ts';
import { utcMillis, zonedMillis } from './instant.ts';
import { canonicalJson, parseJson } from '../json/json.ts';
import type { JsonValue } from '../json/json.ts';
import type { FieldCodec } from './field-codec.ts';
import type { Residue } from './residue.ts';
import { isDouble, isInteger, isLong } from './number-range.ts';
import {
  BOOLEAN,
  DATE,
  DECIMAL,
  DOUBLE,
  EXACT_TIMESTAMP,
  INT,
  LONG,
  ODD,
  STRING,
  TIMESTAMP,
} from './transcoder/layout.ts';

/** A number whose JSON is the Avro value itself. */
const number = (
  put: (out: AvroOutput, value: number) => void,
  holds: (value: JsonValue) => boolean,
  kind: typeof INT | typeof LONG | typeof DOUBLE,
): FieldCodec => ({
  write: (value, out) => {
    if (!holds(value)) return false;
    put(out, value as number);
    return true;
  },
  transcoded: { kind },
  toJson: (value) => value as number,
  writePlaceholder: (out) => put(out, 0),
});

/** A number that Avro's long holds here, exactly; else null. */
export function longOf(value: JsonValue | undefined): number | null {
  return value !== undefined && isLong(value) ? (value as number) : null;
}

const writeLong = (out: AvroOutput, value: number) => out.long(value);

const isInt = (value: JsonValue) => isInteger(value, -(2 ** 31), 2 ** 31 - 1);

const INT_CODEC = number(writeLong, isInt, INT);
const LONG_CODEC = number(writeLong, isLong, LONG);
const DOUBLE_CODEC = number((out, value) => out.double(value), isDouble, DOUBLE);

const BOOLEAN_CODEC: FieldCodec = {
  write: (value, out) => {
    if (typeof value !== 'boolean') return false;
    out.byte(Number(value));
    return true;
  },
  transcoded: { kind: BOOLEAN },
  toJson: (value) => value as boolean,
  writePlaceholder: (out) => out.byte(0),
};

const STRING_CODEC: FieldCodec = {
  write: (value, out) => typeof value === 'string' && out.string(value),
  transcoded: { kind: STRING },
  toJson: (value) => value as string,
  writePlaceholder: (out) => void out.string(''),
};

const TIMESTAMP_CODEC: FieldCodec = {
  write: (value, out, residue) => {
    if (typeof value !== 'string') return false;
    const millis = utcMillis(value);
    if (Number.isNaN(millis)) return writeTimeKeptAsText(value, out, residue);
    out.long(millis);
    return true;
  },
  transcoded: { kind: TIMESTAMP },
  toJson: (value) => instantText(value as number),
  writePlaceholder: (out) => out.long(0),
};

/** The same where the text counts: any but the one form of an instant is kept beside it. */
const EXACT_TIMESTAMP_CODEC: FieldCodec = {
  ...TIMESTAMP_CODEC,
  write: (value, out, residue) => {
    if (typeof value !== 'string') return false;
    const millis = value.length === INSTANT_TEXT_LENGTH ? utcMillis(value) : NaN;
    if (Number.isNaN(millis)) return writeTimeKeptAsText(value, out, residue);
    out.long(millis);
    return true;
  },
  transcoded: { kind: EXACT_TIMESTAMP },
};

function writeTimeKeptAsText(text: string, out: AvroOutput, residue: Residue): boolean {
  const millis = zonedMillis(text);
  if (Number.isNaN(millis)) return false;
  residue.noteValue(text);
  out.long(millis);
  return true;
}

const DATE_CODEC: FieldCodec = {
  write: (value, out) => {
    const days = typeof value === 'string' ? dateDays(value) : NaN;
    if (Number.isNaN(days)) return false;
    out.long(days);
    return true;
  },
  transcoded: { kind: DATE },
  toJson: (value) => dateText(value as number),
  writePlaceholder: (out) => out.long(0),
};

const JSON_TEXT_CODEC: FieldCodec = {
  write: (value, out) => out.string(canonicalJson(value)),
  transcoded: { kind: ODD },
  toJson: (value) => parseJson(value as string),
  writePlaceholder: (out) => void out.string('null'),
};

function decimalCodec(precision: number, scale: number): FieldCodec {
  const format = decimalFormat(precision, scale);
  return {
    write: (value, out) => typeof value === 'number' && format.write(value, out),
    transcoded: { kind: DECIMAL, precision, scale },
    toJson: (value) => format.decode(value as Uint8Array),
    writePlaceholder: (out) => out.bytes(ZERO),
  };
}

const ZERO = Buffer.alloc(1);

/** The codec of a type that has no parts; undefined for one that has, or that isn't supported. */
export function simpleFieldCodec(
  type: AvroType,
  contentMediaType?: string,
): FieldCodec | undefined {
  if (contentMediaType === 'application/json')
    return type === 'string' ? JSON_TEXT_CODEC : undefined;
  if (typeof type === 'object' && 'logicalType' in type) return logicalCodec(type);
  return typeof type === 'string' ? PRIMITIVES.get(type) : undefined;
}

const PRIMITIVES: ReadonlyMap<string, FieldCodec> = new Map([
  ['boolean', BOOLEAN_CODEC],
  ['int', INT_CODEC],
  ['long', LONG_CODEC],
  ['double', DOUBLE_CODEC],
  ['string', STRING_CODEC],
]);

function logicalCodec({ type, logicalType, precision = 0, scale = 0, exact }: LogicalSchema) {
  switch (`${type}:${logicalType}`) {
    case 'bytes:decimal':
      return decimalCodec(precision, scale);
    case 'long:timestamp-millis':
      return exact ? EXACT_TIMESTAMP_CODEC : TIMESTAMP_CODEC;
    case 'int:date':
      return DATE_CODEC;
    default:
      return undefined;
  }
}
