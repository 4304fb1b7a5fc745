import type { AvroOutput } from './avro-output.ts';
import type { AvroType, LogicalSchema } from './avro-schema.ts';
import { decimalFormat } from './decimal.ts';
import {
  dateDays,
  dateText,
  instantText,
  isInstantText,
  utcMillis,
  zonedMillis,
} from './instant.ts';
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY } from './json-bytes.ts';
import type { JsonCursor } from './json-cursor.ts';
import { canonicalJson, parseJson } from './json.ts';
import type { JsonValue } from './json.ts';
import type { Oddities } from './oddities.ts';

/** A value as avsc reads it; of logical types, the underlying number or bytes. */
export type AvroValue =
  null | boolean | number | string | Uint8Array | AvroValue[] | { [name: string]: AvroValue };

/**
 * Writes a value, which isn't null, from JSON as it was sent, without parsing it, and moves the cursor behind it.
 * Where that can't be done it is false, and nothing was read, written or noted.
 *
 * @throws SyntaxError when it isn't JSON.
 */
export type Read = (source: JsonCursor, out: AvroOutput, odd: Oddities) => boolean;

/** How a type of Avro holds JSON values. */
export interface Kind {
  /**
   * Writes a JSON value (never null). Where the type doesn't hold it exactly it is false, and nothing was
   * written. What it holds in part, and what is odd further in, it notes itself.
   */
  readonly write: (value: JsonValue, out: AvroOutput, odd: Oddities) => boolean;
  /** Default none: what has to be parsed. */
  readonly read?: Read;
  readonly toJson: (value: AvroValue) => JsonValue;
  /** Writes what stands in an array for an element that isn't held. */
  readonly writePlaceholder: (out: AvroOutput) => void;
}

/**
 * Writes the value that a cursor is at, which isn't null, and moves the cursor behind it. Where the type doesn't hold it
 * it is noted, false is given back, and nothing was written.
 *
 * @throws SyntaxError when it isn't JSON.
 */
export function readValue(kind: Kind, source: JsonCursor, out: AvroOutput, odd: Oddities): boolean {
  if (kind.read?.(source, out, odd)) return true;
  const value = source.value();
  if (kind.write(value, out, odd)) return true;
  odd.noteValue(value);
  return false;
}

/** A value of several parts: where one of them can't be read, all that was done before it is undone. */
export function allOrNothing(read: Read): Read {
  return (source, out, odd) => {
    const { at } = source;
    const { length } = out;
    const { noted } = odd;
    if (read(source, out, odd)) return true;
    source.at = at;
    out.length = length;
    odd.backTo(noted);
    return false;
  };
}

/**
 * The longs that avsc reads as they were written. It counts in doubles: it takes one less than the safe
 * integers, and gets wrong, without a word, what is below -2^52 (of which Avro writes `-2n - 1`).
 */
const MAX_LONG = Number.MAX_SAFE_INTEGER - 1;
const MIN_LONG = -(2 ** 52);

/** A number whose JSON is the Avro value itself. */
const number = (
  write: (out: AvroOutput, value: number) => void,
  holds: (value: JsonValue) => boolean,
): Kind => ({
  write: (value, out) => {
    if (!holds(value)) return false;
    write(out, value as number);
    return true;
  },
  toJson: (value) => value as number,
  writePlaceholder: (out) => write(out, 0),
});

const isInteger = (value: JsonValue, least: number, most: number): boolean =>
  Number.isInteger(value) &&
  (value as number) >= least &&
  (value as number) <= most &&
  !Object.is(value, -0);

/** Whether a field of type `long` holds the value. */
export const isLong = (value: JsonValue): boolean => isInteger(value, MIN_LONG, MAX_LONG);

/** Whether a field of type `double` holds the value. */
export const isDouble = (value: JsonValue): boolean =>
  Number.isFinite(value) && !Object.is(value, -0);

/** A number that Avro's long holds here, exactly; else null. */
export function longOf(value: JsonValue | undefined): number | null {
  return value !== undefined && isLong(value) ? (value as number) : null;
}

const writeLong = (out: AvroOutput, value: number) => out.long(value);

const INT = number(writeLong, (value) => isInteger(value, -(2 ** 31), 2 ** 31 - 1));
const LONG = number(writeLong, isLong);
const DOUBLE = number((out, value) => out.double(value), isDouble);

const BOOLEAN: Kind = {
  write: (value, out) => {
    if (typeof value !== 'boolean') return false;
    out.byte(Number(value));
    return true;
  },
  toJson: (value) => value as boolean,
  writePlaceholder: (out) => out.byte(0),
};

const STRING: Kind = {
  write: (value, out) => typeof value === 'string' && out.string(value),
  read: (source, out) => {
    const end = source.endOfPlainText();
    if (end < 0) return false;
    out.utf8(source.page, source.at + 1, end);
    source.at = end + 1;
    return true;
  },
  toJson: (value) => value as string,
  writePlaceholder: (out) => void out.string(''),
};

const TIMESTAMP_MILLIS: Kind = {
  write: (value, out, odd) => {
    if (typeof value !== 'string') return false;
    const millis = utcMillis(value);
    if (Number.isNaN(millis)) return writeTimeKeptAsText(value, out, odd);
    out.long(millis);
    return true;
  },
  toJson: (value) => instantText(value as number),
  writePlaceholder: (out) => out.long(0),
};

/** The same where the text counts: any but the one form of an instant is kept beside it. */
const EXACT_TIMESTAMP_MILLIS: Kind = {
  ...TIMESTAMP_MILLIS,
  write: (value, out, odd) => {
    if (typeof value !== 'string') return false;
    if (!isInstantText(value)) return writeTimeKeptAsText(value, out, odd);
    out.long(utcMillis(value));
    return true;
  },
};

function writeTimeKeptAsText(text: string, out: AvroOutput, odd: Oddities): boolean {
  const millis = zonedMillis(text);
  if (Number.isNaN(millis)) return false;
  odd.noteValue(text);
  out.long(millis);
  return true;
}

const DATE: Kind = {
  write: (value, out) => {
    const days = typeof value === 'string' ? dateDays(value) : NaN;
    if (Number.isNaN(days)) return false;
    out.long(days);
    return true;
  },
  toJson: (value) => dateText(value as number),
  writePlaceholder: (out) => out.long(0),
};

const JSON_TEXT: Kind = {
  write: (value, out) => out.string(canonicalJson(value)),
  toJson: (value) => parseJson(value as string),
  writePlaceholder: (out) => void out.string('null'),
};

function decimalKind(precision: number, scale: number): Kind {
  const format = decimalFormat(precision, scale);
  return {
    write: (value, out) => typeof value === 'number' && format.write(value, out),
    toJson: (value) => format.decode(value as Uint8Array),
    writePlaceholder: (out) => out.bytes(ZERO),
  };
}

const ZERO = Buffer.alloc(1);

/** Counts up to here take a byte. */
const MOST_COUNTED = 63;

export function arrayKind(items: Kind): Kind {
  return {
    write: (value, out, odd) => {
      if (!Array.isArray(value)) return false;
      writeBlock(out, value, (item, index) => {
        odd.path.push(index);
        if (item === null) {
          odd.noteNull();
          items.writePlaceholder(out);
        } else if (!items.write(item, out, odd)) {
          odd.noteValue(item);
          items.writePlaceholder(out);
        }
        odd.path.pop();
      });
      return true;
    },
    read: allOrNothing((source, out, odd) => {
      if (!source.takes(OPEN_ARRAY)) return false;
      const start = out.length;
      out.byte(0); // their count, or the end
      if (source.takes(CLOSE_ARRAY)) return true;
      let count = 0;
      do {
        source.skipSpace();
        odd.path.push(count);
        if (source.takesNull()) {
          odd.noteNull();
          items.writePlaceholder(out);
        } else if (!readValue(items, source, out, odd)) items.writePlaceholder(out);
        odd.path.pop();
        count += 1;
      } while (source.takes(COMMA));
      if (count > MOST_COUNTED || !source.takes(CLOSE_ARRAY)) return false;
      out.replaceByte(start, count * 2);
      out.byte(0);
      return true;
    }),
    toJson: (value) => (value as AvroValue[]).map(items.toJson),
    writePlaceholder: (out) => out.long(0),
  };
}

/** An array or a map: its items in one block, if there are any, and the end. */
export function writeBlock<T>(
  out: AvroOutput,
  items: readonly T[],
  write: (item: T, index: number) => void,
): void {
  if (items.length > 0) {
    out.long(items.length);
    items.forEach(write);
  }
  out.long(0);
}

/** The kind of a type that has no parts; undefined for one that has, or that isn't supported. */
export function simpleKind(type: AvroType, contentMediaType?: string): Kind | undefined {
  if (contentMediaType === 'application/json') return type === 'string' ? JSON_TEXT : undefined;
  if (typeof type === 'object' && 'logicalType' in type) return logicalKind(type);
  return typeof type === 'string' ? PRIMITIVES.get(type) : undefined;
}

const PRIMITIVES: ReadonlyMap<string, Kind> = new Map([
  ['boolean', BOOLEAN],
  ['int', INT],
  ['long', LONG],
  ['double', DOUBLE],
  ['string', STRING],
]);

function logicalKind({ type, logicalType, precision = 0, scale = 0, exact }: LogicalSchema) {
  switch (`${type}:${logicalType}`) {
    case 'bytes:decimal':
      return decimalKind(precision, scale);
    case 'long:timestamp-millis':
      return exact ? EXACT_TIMESTAMP_MILLIS : TIMESTAMP_MILLIS;
    case 'int:date':
      return DATE;
    default:
      return undefined;
  }
}
