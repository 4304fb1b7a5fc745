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
import { canonicalJson, parseJson } from './json.ts';
import type { JsonValue } from './json.ts';

/** A value as avsc reads and writes it; of logical types, the underlying number or bytes. */
export type AvroValue =
  null | boolean | number | string | Uint8Array | AvroValue[] | { [name: string]: AvroValue };

/** What is met in a record that its typed fields can't say. All by JSON Pointer. */
export interface Oddities {
  /** Where the API sent null. */
  readonly nulls: string[];
  /** Exact values, as JSON text. */
  readonly unmapped: Map<string, string>;
}

/** How a type of Avro holds JSON values. */
export interface Kind {
  /**
   * The Avro value of a JSON value (never null), or undefined where it doesn't hold it exactly. What
   * it holds in part, and what is odd further in, it notes itself.
   */
  readonly toAvro: (value: JsonValue, pointer: string, odd: Oddities) => AvroValue | undefined;
  readonly toJson: (value: AvroValue) => JsonValue;
  /** Stands in an array for an element that isn't held. */
  readonly placeholder: AvroValue;
}

/**
 * The longs that avsc writes as they are. It counts in doubles: it takes one less than the safe
 * integers, and gets wrong, without a word, what is below -2^52 (of which Avro writes `-2n - 1`).
 */
const MAX_LONG = Number.MAX_SAFE_INTEGER - 1;
const MIN_LONG = -(2 ** 52);

const holds = <T extends JsonValue & AvroValue>(
  placeholder: T,
  test: (value: JsonValue) => boolean,
): Kind => ({
  toAvro: (value) => (test(value) ? (value as T) : undefined),
  toJson: (value) => value as T,
  placeholder,
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

const INT = holds(0, (value) => isInteger(value, -(2 ** 31), 2 ** 31 - 1));
const LONG = holds(0, isLong);
const DOUBLE = holds(0, isDouble);
const BOOLEAN = holds(false, (value) => typeof value === 'boolean');
const STRING = holds('', (value) => typeof value === 'string' && value.isWellFormed());

const TIMESTAMP_MILLIS: Kind = {
  toAvro: (value, pointer, odd) => {
    if (typeof value !== 'string') return undefined;
    const millis = utcMillis(value);
    return Number.isNaN(millis) ? timeKeptAsText(value, pointer, odd) : millis;
  },
  toJson: (value) => instantText(value as number),
  placeholder: 0,
};

/** The same where the text counts: any but the one form of an instant is kept beside it. */
const EXACT_TIMESTAMP_MILLIS: Kind = {
  ...TIMESTAMP_MILLIS,
  toAvro: (value, pointer, odd) => {
    if (typeof value !== 'string') return undefined;
    return isInstantText(value) ? utcMillis(value) : timeKeptAsText(value, pointer, odd);
  },
};

function timeKeptAsText(text: string, pointer: string, odd: Oddities): number | undefined {
  const millis = zonedMillis(text);
  if (Number.isNaN(millis)) return undefined;
  odd.unmapped.set(pointer, canonicalJson(text));
  return millis;
}

const DATE: Kind = {
  toAvro: (value) => {
    const days = typeof value === 'string' ? dateDays(value) : NaN;
    return Number.isNaN(days) ? undefined : days;
  },
  toJson: (value) => dateText(value as number),
  placeholder: 0,
};

const JSON_TEXT: Kind = {
  toAvro: (value) => canonicalJson(value),
  toJson: (value) => parseJson(value as string),
  placeholder: 'null',
};

function decimalKind(precision: number, scale: number): Kind {
  const format = decimalFormat(precision, scale);
  return {
    toAvro: (value) => (typeof value === 'number' ? format.encode(value) : undefined),
    toJson: (value) => format.decode(value as Uint8Array),
    placeholder: Buffer.alloc(1),
  };
}

export function arrayKind(items: Kind): Kind {
  const { placeholder } = items;
  return {
    toAvro: (value, pointer, odd) => {
      if (!Array.isArray(value)) return undefined;
      return value.map((item, index) => {
        if (item === null) {
          odd.nulls.push(`${pointer}/${index}`);
          return placeholder;
        }
        const held = items.toAvro(item, `${pointer}/${index}`, odd);
        if (held !== undefined) return held;
        odd.unmapped.set(`${pointer}/${index}`, canonicalJson(item));
        return placeholder;
      });
    },
    toJson: (value) => (value as AvroValue[]).map(items.toJson),
    placeholder: [],
  };
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
