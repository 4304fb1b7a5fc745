import type { AvroOutput } from './avro-output.ts';
import type { JsonCursor } from '../json/json-cursor.ts';
import type { JsonValue } from '../json/json.ts';
import type { Residue } from './residue.ts';

/** A value as avsc reads it; of logical types, the underlying number or bytes. */
export type AvroValue =
  null | boolean | number | string | Uint8Array | AvroValue[] | { [name: string]: AvroValue };

/**
 * Writes a value, which isn't null, from JSON as it was sent, without parsing it, and moves the cursor behind it.
 * Where that can't be done, or it isn't JSON, it is false, and nothing was read, written or noted.
 *
 * @throws SyntaxError maybe, when it isn't JSON.
 */
export type Read = (source: JsonCursor, out: AvroOutput, residue: Residue) => boolean;

/** How a type of Avro holds JSON values. */
export interface FieldCodec {
  /**
   * Writes a JSON value (never null). Where the type doesn't hold it exactly it is false, and nothing was
   * written. What it holds in part, and what is odd further in, it notes itself.
   */
  readonly write: (value: JsonValue, out: AvroOutput, residue: Residue) => boolean;
  /** Left out by codecs whose values are parsed first. */
  readonly read?: Read;
  readonly toJson: (value: AvroValue) => JsonValue;
  /** Writes what stands in an array for an element that isn't held. */
  readonly writePlaceholder: (out: AvroOutput) => void;
}

/**
 * Writes the value that a cursor is at, which isn't null, and moves the cursor behind it. Where the type doesn't hold it
 * it is noted, false is given back, and nothing was written. It throws a SyntaxError when it isn't JSON.
 */
export function readingValues({ read, write }: FieldCodec): Read {
  return (source, out, residue) => {
    if (read?.(source, out, residue)) return true;
    const value = source.value();
    if (write(value, out, residue)) return true;
    residue.noteValue(value);
    return false;
  };
}

/** A value of several parts: where one of them can't be read, all that was done before it is undone. */
export function allOrNothing(read: Read): Read {
  return (source, out, residue) => {
    const { at } = source;
    const { length } = out;
    const { noted } = residue;
    residue.enter();
    const isRead = read(source, out, residue);
    residue.leave();
    if (isRead) return true;
    source.at = at;
    out.length = length;
    residue.backTo(noted);
    return false;
  };
}
