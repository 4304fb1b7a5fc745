// Interface of the codecs between JSON values and Avro types; encodes values as nullable fields and as array items.

import type { AvroOutput } from './avro-output.ts';
import type { JsonValue } from '../json/json.ts';
import type { EncodingResidue } from './encoding-residue.ts';
import * as layout from './transcoder/layout.ts';

/** A value as the library avsc decodes it from Avro; logical types are the underlying number or bytes. */
export type AvroValue =
  null | boolean | number | string | Uint8Array | AvroValue[] | { [name: string]: AvroValue };

/** Codec between JSON values and one Avro type. */
export interface FieldCodec {
  /**
   * Writes a JSON value (never null). Returns false, with nothing written, if the type can't represent it exactly. Details that the type
   * represents only partly, and nested values that it can't represent, are added to `residue` to be stored apart.
   */
  readonly write: (value: JsonValue, out: AvroOutput, residue: EncodingResidue) => boolean;
  /**
   * How the transcoder (in WebAssembly) encodes values of this type from their JSON bytes, with the same result as `write`; values of an
   * `ODD` type are always left to `write`.
   */
  readonly transcoded: TranscodedType;
  readonly toJson: (value: AvroValue) => JsonValue;
  /** Writes the value that replaces an array item which the type can't represent. */
  readonly writePlaceholder: (out: AvroOutput) => void;
}

/** Description of an Avro type for the transcoder, which encodes records from JSON bytes in WebAssembly. */
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

/** A field of an Avro record, as the transcoder (in WebAssembly) needs it. */
export interface TranscodedField {
  readonly jsonName: string;
  /** JSON Pointer step of the field, with its slash. */
  readonly step: string;
  readonly codec: FieldCodec;
}

/**
 * Writes a JSON value as a nullable field in Avro, of the union type `["null", T]`. A value that T can't represent is written as null, and
 * added to `residue` to be stored apart.
 */
export function writeNullable(
  codec: FieldCodec,
  value: JsonValue,
  out: AvroOutput,
  residue: EncodingResidue,
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

/**
 * Writes an item of a JSON array in Avro. An item that the type can't represent is added to `residue` to be stored apart, and a placeholder
 * is written.
 */
export function writeItem(
  codec: FieldCodec,
  value: JsonValue,
  out: AvroOutput,
  residue: EncodingResidue,
): void {
  if (value === null) residue.noteNull();
  else if (codec.write(value, out, residue)) return;
  else residue.noteValue(value);
  codec.writePlaceholder(out);
}
