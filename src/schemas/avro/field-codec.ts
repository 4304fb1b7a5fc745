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
   * Writes a JSON value, which must not be null. Returns false, with nothing written, if the type can't represent the value exactly. Adds
   * to `residue` what the written value lacks, such as the original text of a time.
   */
  readonly write: (value: JsonValue, out: AvroOutput, residue: EncodingResidue) => boolean;
  /**
   * Description of the type for WebAssembly, which encodes values from their JSON bytes with the same result as `write`. For a type of the
   * kind `ODD`, only `write` encodes values.
   */
  readonly transcoded: TranscodedType;
  readonly toJson: (value: AvroValue) => JsonValue;
  /** Writes the value that replaces an array item that is null or can't be represented, such as 0 or an empty string. */
  readonly writePlaceholder: (out: AvroOutput) => void;
}

/** Description of an Avro type for the WebAssembly transcoder, which encodes JSON bytes in Avro. */
interface TranscodedType {
  /** Kind of the type: one of the constants from `ODD` to `ARRAY` in `transcoder/layout.ts`. */
  readonly kind: number;
  /** The fields of a record type; undefined for any other type. */
  readonly fields?: readonly TranscodedField[];
  /** The codec of the items of an array type; undefined for any other type. */
  readonly items?: FieldCodec;
  /** The size of a decimal type, as numbers of digits; undefined for any other type. */
  readonly decimal?: { readonly precision: number; readonly scale: number };
}

/** Description of a field of an Avro record for the WebAssembly transcoder, which encodes JSON bytes in Avro. */
export interface TranscodedField {
  readonly jsonName: string;
  /** The field's step in a JSON Pointer, with the slash before it, such as `/name`. */
  readonly step: string;
  readonly codec: FieldCodec;
}

/**
 * Writes a JSON value as a field of the type `["null", T]`. JSON null, or a value that T can't represent, is written as null and noted in
 * `residue`.
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
 * Writes an item of a JSON array. For null, or an item that the type can't represent, writes a placeholder and adds a note to `residue`.
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
