import type { AvroOutput } from './avro-output.ts';
import type { AvroType, LogicalSchema } from './avro-schema.ts';
import { decimalFormat } from './decimal.ts';
import {
  dateDays,
  dateDaysIn,
  dateText,
  DATE_TEXT_LENGTH,
  INSTANT_TEXT_LENGTH,
  instantText,
  utcMillis,
  utcMillisIn,
  zonedMillis,
} from './instant.ts';
import { canonicalJson, parseJson } from '../json/json.ts';
import type { JsonValue } from '../json/json.ts';
import type { FieldCodec, Read } from './field-codec.ts';
import type { Residue } from './residue.ts';
import { isDouble, isInteger, isLong } from './number-range.ts';

/** A number, from its digits. */
const readNumber =
  (write: (value: number, out: AvroOutput) => boolean): Read =>
  (source, out) => {
    const { at } = source;
    const value = source.shortNumber();
    if (value === undefined) return false;
    if (write(value, out)) return true;
    source.at = at;
    return false;
  };

/** A text that says a number, from its bytes; `valueIn` is NaN for any other. Most are of one length. */
const readText =
  (valueIn: (page: Uint8Array, from: number, to: number) => number, usualLength: number): Read =>
  (source, out) => {
    let end = source.endOfText(usualLength);
    let value = end < 0 ? NaN : valueIn(source.page, source.at + 1, end);
    if (Number.isNaN(value)) {
      end = source.endOfPlainText();
      value = end < 0 ? NaN : valueIn(source.page, source.at + 1, end);
    }
    if (Number.isNaN(value)) return false;
    out.long(value);
    source.at = end + 1;
    return true;
  };

/** A number whose JSON is the Avro value itself. */
const number = (
  put: (out: AvroOutput, value: number) => void,
  holds: (value: JsonValue) => boolean,
): FieldCodec => {
  const write = (value: JsonValue, out: AvroOutput): boolean => {
    if (!holds(value)) return false;
    put(out, value as number);
    return true;
  };
  return {
    write,
    read: readNumber(write),
    toJson: (value) => value as number,
    writePlaceholder: (out) => put(out, 0),
  };
};

/** A number that Avro's long holds here, exactly; else null. */
export function longOf(value: JsonValue | undefined): number | null {
  return value !== undefined && isLong(value) ? (value as number) : null;
}

const writeLong = (out: AvroOutput, value: number) => out.long(value);

const INT = number(writeLong, (value) => isInteger(value, -(2 ** 31), 2 ** 31 - 1));
const LONG = number(writeLong, isLong);
const DOUBLE = number((out, value) => out.double(value), isDouble);

const BOOLEAN: FieldCodec = {
  write: (value, out) => {
    if (typeof value !== 'boolean') return false;
    out.byte(Number(value));
    return true;
  },
  toJson: (value) => value as boolean,
  writePlaceholder: (out) => out.byte(0),
};

const STRING: FieldCodec = {
  write: (value, out) => typeof value === 'string' && out.string(value),
  read: (source, out) => {
    let end = out.shortText(source.page, source.at);
    if (end < 0) {
      end = source.endOfPlainText();
      if (end < 0) return false;
      out.utf8(source.page, source.at + 1, end);
    }
    source.at = end + 1;
    return true;
  },
  toJson: (value) => value as string,
  writePlaceholder: (out) => void out.string(''),
};

const TIMESTAMP_MILLIS: FieldCodec = {
  write: (value, out, residue) => {
    if (typeof value !== 'string') return false;
    const millis = utcMillis(value);
    if (Number.isNaN(millis)) return writeTimeKeptAsText(value, out, residue);
    out.long(millis);
    return true;
  },
  read: readText(utcMillisIn, INSTANT_TEXT_LENGTH),
  toJson: (value) => instantText(value as number),
  writePlaceholder: (out) => out.long(0),
};

/** The same where the text counts: any but the one form of an instant is kept beside it. */
const EXACT_TIMESTAMP_MILLIS: FieldCodec = {
  ...TIMESTAMP_MILLIS,
  write: (value, out, residue) => {
    if (typeof value !== 'string') return false;
    const millis = value.length === INSTANT_TEXT_LENGTH ? utcMillis(value) : NaN;
    if (Number.isNaN(millis)) return writeTimeKeptAsText(value, out, residue);
    out.long(millis);
    return true;
  },
  read: readText(
    (page, from, to) => (to - from === INSTANT_TEXT_LENGTH ? utcMillisIn(page, from, to) : NaN),
    INSTANT_TEXT_LENGTH,
  ),
};

function writeTimeKeptAsText(text: string, out: AvroOutput, residue: Residue): boolean {
  const millis = zonedMillis(text);
  if (Number.isNaN(millis)) return false;
  residue.noteValue(text);
  out.long(millis);
  return true;
}

const DATE: FieldCodec = {
  write: (value, out) => {
    const days = typeof value === 'string' ? dateDays(value) : NaN;
    if (Number.isNaN(days)) return false;
    out.long(days);
    return true;
  },
  read: readText(dateDaysIn, DATE_TEXT_LENGTH),
  toJson: (value) => dateText(value as number),
  writePlaceholder: (out) => out.long(0),
};

const JSON_TEXT: FieldCodec = {
  write: (value, out) => out.string(canonicalJson(value)),
  toJson: (value) => parseJson(value as string),
  writePlaceholder: (out) => void out.string('null'),
};

function decimalCodec(precision: number, scale: number): FieldCodec {
  const format = decimalFormat(precision, scale);
  return {
    write: (value, out) => typeof value === 'number' && format.write(value, out),
    read: readNumber((value, out) => format.write(value, out)),
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
  if (contentMediaType === 'application/json') return type === 'string' ? JSON_TEXT : undefined;
  if (typeof type === 'object' && 'logicalType' in type) return logicalCodec(type);
  return typeof type === 'string' ? PRIMITIVES.get(type) : undefined;
}

const PRIMITIVES: ReadonlyMap<string, FieldCodec> = new Map([
  ['boolean', BOOLEAN],
  ['int', INT],
  ['long', LONG],
  ['double', DOUBLE],
  ['string', STRING],
]);

function logicalCodec({ type, logicalType, precision = 0, scale = 0, exact }: LogicalSchema) {
  switch (`${type}:${logicalType}`) {
    case 'bytes:decimal':
      return decimalCodec(precision, scale);
    case 'long:timestamp-millis':
      return exact ? EXACT_TIMESTAMP_MILLIS : TIMESTAMP_MILLIS;
    case 'int:date':
      return DATE;
    default:
      return undefined;
  }
}
