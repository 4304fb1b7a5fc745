// The interface of a field's codec, and how values are written as nullable fields and as items of arrays.

import type { AvroOutput } from './avro-output.ts';
import type { JsonValue } from '../json/json.ts';
import type { Residue } from './residue.ts';
import * as layout from './transcoder/layout.ts';

/** A value as avsc reads it; of logical types, the underlying number or bytes. */
export type AvroValue =
  null | boolean | number | string | Uint8Array | AvroValue[] | { [name: string]: AvroValue };

/** How a type of Avro holds JSON values. */
export interface FieldCodec {
  /**
   * Writes a JSON value (never null). Where the type doesn't hold it exactly it is false, and nothing was
   * written. What it holds in part, and what is odd further in, it notes itself.
   */
  readonly write: (value: JsonValue, out: AvroOutput, residue: Residue) => boolean;
  /** How the transcoder reads values from bytes, and writes them as `write` does; one that is `ODD` it leaves to `write`. */
  readonly transcoded: TranscodedType;
  readonly toJson: (value: AvroValue) => JsonValue;
  /** Writes what stands in an array for an element that isn't held. */
  readonly writePlaceholder: (out: AvroOutput) => void;
}

/** What the transcoder has to know of a type. */
type TranscodedType =
  | {
      readonly kind:
        | typeof layout.ODD
        | typeof layout.STRING
        | typeof layout.INT
        | typeof layout.LONG
        | typeof layout.DOUBLE
        | typeof layout.BOOLEAN
        | typeof layout.TIMESTAMP
        | typeof layout.EXACT_TIMESTAMP
        | typeof layout.DATE;
    }
  | { readonly kind: typeof layout.DECIMAL; readonly precision: number; readonly scale: number }
  | { readonly kind: typeof layout.RECORD; readonly fields: readonly TranscodedField[] }
  | { readonly kind: typeof layout.ARRAY; readonly items: FieldCodec };

/** A field of a record. */
export interface TranscodedField {
  readonly jsonName: string;
  /** Of a JSON Pointer, with its slash. */
  readonly step: string;
  readonly codec: FieldCodec;
}

/** A field that there is, as `["null", T]`. What its type doesn't hold is noted. */
export function writeNullable(
  codec: FieldCodec,
  value: JsonValue,
  out: AvroOutput,
  residue: Residue,
): void {
  if (value === null) {
    residue.noteNull();
    out.byte(layout.NULL_BRANCH);
    return;
  }
  const start = out.length;
  out.byte(layout.VALUE_BRANCH);
  if (codec.write(value, out, residue)) return;
  out.length = start;
  out.byte(layout.NULL_BRANCH);
  residue.noteValue(value);
}

/** An item of an array. What its type doesn't hold is noted, and something stands in its place. */
export function writeItem(
  codec: FieldCodec,
  value: JsonValue,
  out: AvroOutput,
  residue: Residue,
): void {
  if (value === null) residue.noteNull();
  else if (codec.write(value, out, residue)) return;
  else residue.noteValue(value);
  codec.writePlaceholder(out);
}
