// Codecs between JSON values and Avro types without nested types: numbers, strings, times, dates, decimals, JSON text.

import type { AvroOutput } from './avro-output.ts';
import { isDouble, isInteger, isLong, type AvroType, type LogicalSchema } from './avro-schema.ts';
import { dateDays, dateText, exactMillis, instantText, utcMillis, zonedMillis } from './instant.ts';
import { canonicalJson, parseJson, type JsonValue } from '../json/json.ts';
import type { FieldCodec } from './field-codec.ts';
import * as layout from './transcoder/layout.ts';

/** Maximum precision of a decimal: every integer of up to 18 digits fits in 8 bytes. */
const MAX_PRECISION = 18;

/**
 * Largest absolute unscaled value of a decimal that is encoded with double arithmetic. Larger values are encoded from their digits, as the
 * arithmetic would not always be exact.
 */
const MAX_EXACT = 1e15;

/**
 * Returns the codec between numbers and Avro decimals of a fixed precision and scale: an unscaled integer in big-endian two's complement.
 *
 * @throws TypeError for a precision not within 1 to 18, or a scale not within 0 to the precision.
 */
export function decimalFormat(precision: number, scale: number) {
  if (!(precision >= 1 && precision <= MAX_PRECISION && scale >= 0 && scale <= precision)) {
    throw new TypeError(
      `an Avro decimal of precision ${precision} and scale ${scale} is not supported: in the schema, the precision must be from 1 to ${MAX_PRECISION}, and the scale from 0 to the precision`,
    );
  }
  const unit = 10 ** scale;
  const limit = 10 ** precision;

  /** Writes the decimal that decodes to exactly this number. Returns false, with nothing written, if there is no such decimal. */
  const write = (value: number, out: AvroOutput): boolean => {
    const unscaled = Math.round(value * unit);
    if (Math.abs(unscaled) > MAX_EXACT) return writeDigits(value, out);
    const isExact = unscaled / unit === value && !Object.is(value, -0);
    if (!isExact || Math.abs(unscaled) >= limit) return false;
    writeInteger(unscaled, out);
    return true;
  };

  /**
   * Writes a value that is too large for exact double arithmetic, using the digits of its shortest decimal text. Returns false, with
   * nothing written, if they do not fit the precision and scale.
   */
  const writeDigits = (value: number, out: AvroOutput): boolean => {
    const [whole = '', fraction = ''] = String(value).split('.');
    if (!/^-?\d+$/.test(whole) || fraction.length > scale) return false;
    const unscaled = BigInt(whole + fraction.padEnd(scale, '0'));
    if (whole.replace('-', '').length > precision - scale) return false;
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeBigInt64BE(unscaled);
    let start = 0; // skips leading bytes that only repeat the sign
    while (start < 7 && bytes.readInt8(start) === bytes.readInt8(start + 1) >> 7) start++;
    out.bytes(bytes.subarray(start));
    return true;
  };

  /** Decodes the bytes of an Avro decimal to the nearest number. */
  const decode = (bytes: Uint8Array): number => {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length <= 6) return bytes.length === 0 ? 0 : buffer.readIntBE(0, bytes.length) / unit;
    const unscaled = BigInt.asIntN(bytes.length * 8, BigInt(`0x${buffer.toString('hex')}`));
    const digits = String(unscaled)
      .replace('-', '')
      .padStart(scale + 1, '0');
    const split = digits.length - scale;
    return Number(`${unscaled < 0n ? '-' : ''}${digits.slice(0, split)}.${digits.slice(split)}`);
  };

  return { write, decode };
}

/** Writes an integer with an absolute value below 2^53 as Avro bytes: their number, then the shortest form in two's complement. */
function writeInteger(integer: number, out: AvroOutput): void {
  const magnitude = integer < 0 ? -integer - 1 : integer;
  let length = 1;
  let limit = 0x80;
  for (; magnitude >= limit; limit *= 0x100) length++;
  out.long(length);
  for (let unit = limit / 0x80; unit >= 1; unit /= 0x100) out.byte(Math.floor(integer / unit));
}

/** Returns the codec of a number type: the JSON number and the Avro value are equal. */
const number = (
  put: (out: AvroOutput, value: number) => void,
  holds: (value: JsonValue) => boolean,
  kind: number,
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

/** Returns the value if it is an integer that can be written as Avro's long and read with avsc without loss; else null. */
export function longOf(value: JsonValue | undefined): number | null {
  return value !== undefined && isLong(value) ? (value as number) : null;
}

const writeLong = (out: AvroOutput, value: number) => out.long(value);

const isInt = (value: JsonValue) => isInteger(value, -(2 ** 31), 2 ** 31 - 1);

const writeDouble = (out: AvroOutput, value: number) => out.double(value);

const BOOLEAN_CODEC: FieldCodec = {
  write: (value, out) => {
    if (typeof value !== 'boolean') return false;
    out.byte(Number(value));
    return true;
  },
  transcoded: { kind: layout.BOOLEAN },
  toJson: (value) => value as boolean,
  writePlaceholder: (out) => out.byte(0),
};

const STRING_CODEC: FieldCodec = {
  write: (value, out) => typeof value === 'string' && out.string(value),
  transcoded: { kind: layout.STRING },
  toJson: (value) => value as string,
  writePlaceholder: (out) => void out.string(''),
};

/**
 * Returns the codec of a type that stores a time or a date as an integer. The parsers return NaN for a text that they do not accept. A text
 * that neither parser accepts can't be encoded.
 *
 * @param parse Tried first. Accepts texts that `format` restores from the integer, exactly or in an equivalent notation.
 * @param parseOther Accepts other texts, which are stored in `unmapped` beside the integer.
 */
const time = (
  kind: number,
  parse: (text: string) => number,
  parseOther: (text: string) => number,
  format: (integer: number) => string,
): FieldCodec => ({
  write: (value, out, residue) => {
    if (typeof value !== 'string') return false;
    let integer = parse(value);
    if (Number.isNaN(integer)) {
      integer = parseOther(value);
      if (Number.isNaN(integer)) return false;
      residue.noteValue(value);
    }
    out.long(integer);
    return true;
  },
  transcoded: { kind },
  toJson: (value) => format(value as number),
  writePlaceholder: (out) => out.long(0),
});

const TIMESTAMP_CODEC = time(layout.TIMESTAMP, utcMillis, zonedMillis, instantText);

/**
 * Like {@link TIMESTAMP_CODEC}, but also stores the original text of each time that is not written exactly as in
 * `2024-05-01T12:34:56.789Z`.
 */
const EXACT_TIMESTAMP_CODEC = time(layout.EXACT_TIMESTAMP, exactMillis, zonedMillis, instantText);

const DATE_CODEC = time(layout.DATE, dateDays, () => NaN, dateText);

const JSON_TEXT_CODEC: FieldCodec = {
  write: (value, out) => out.string(canonicalJson(value)),
  transcoded: { kind: layout.ODD },
  toJson: (value) => parseJson(value as string),
  writePlaceholder: (out) => void out.string('null'),
};

function decimalCodec(precision: number, scale: number): FieldCodec {
  const format = decimalFormat(precision, scale);
  return {
    write: (value, out) => typeof value === 'number' && format.write(value, out),
    transcoded: { kind: layout.DECIMAL, decimal: { precision, scale } },
    toJson: (value) => format.decode(value as Uint8Array),
    writePlaceholder: (out) => out.bytes(ZERO),
  };
}

const ZERO = Buffer.alloc(1);

/** Returns the codec of an Avro type without nested types; undefined if the type has nested types or isn't supported. */
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
  ['int', number(writeLong, isInt, layout.INT)],
  ['long', number(writeLong, isLong, layout.LONG)],
  ['double', number(writeDouble, isDouble, layout.DOUBLE)],
  ['string', STRING_CODEC],
]);

function logicalCodec({ type, logicalType, precision = 0, scale = 0, exact }: LogicalSchema) {
  const name = `${type}:${logicalType}`;
  if (name === 'bytes:decimal') return decimalCodec(precision, scale);
  if (name === 'long:timestamp-millis') return exact ? EXACT_TIMESTAMP_CODEC : TIMESTAMP_CODEC;
  return name === 'int:date' ? DATE_CODEC : undefined;
}
