import type { AvroOutput } from './avro-output.ts';
import type { JsonCursor } from '../json/json-cursor.ts';
import type { JsonValue } from '../json/json.ts';
import type { Oddities } from './oddities.ts';

/** A value as avsc reads it; of logical types, the underlying number or bytes. */
export type AvroValue =
  null | boolean | number | string | Uint8Array | AvroValue[] | { [name: string]: AvroValue };

/**
 * Writes a value, which isn't null, from JSON as it was sent, without parsing it, and moves the cursor behind it.
 * Where that can't be done, or it isn't JSON, it is false, and nothing was read, written or noted.
 *
 * @throws SyntaxError maybe, when it isn't JSON.
 */
export type Read = (source: JsonCursor, out: AvroOutput, odd: Oddities) => boolean;

/** How a type of Avro holds JSON values. */
export interface Kind {
  /**
   * Writes a JSON value (never null). Where the type doesn't hold it exactly it is false, and nothing was
   * written. What it holds in part, and what is odd further in, it notes itself.
   */
  readonly write: (value: JsonValue, out: AvroOutput, odd: Oddities) => boolean;
  /** Left out by kinds whose values are parsed first. */
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
