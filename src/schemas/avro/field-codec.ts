import type { AvroOutput } from './avro-output.ts';
import type { JsonValue } from '../json/json.ts';
import type { Residue } from './residue.ts';
import type {
  ARRAY,
  BOOLEAN,
  DATE,
  DECIMAL,
  DOUBLE,
  EXACT_TIMESTAMP,
  INT,
  LONG,
  ODD,
  RECORD,
  STRING,
  TIMESTAMP,
} from './transcoder/layout.ts';

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
export type TranscodedType =
  | {
      readonly kind:
        | typeof ODD
        | typeof STRING
        | typeof INT
        | typeof LONG
        | typeof DOUBLE
        | typeof BOOLEAN
        | typeof TIMESTAMP
        | typeof EXACT_TIMESTAMP
        | typeof DATE;
    }
  | { readonly kind: typeof DECIMAL; readonly precision: number; readonly scale: number }
  | { readonly kind: typeof RECORD; readonly fields: readonly TranscodedField[] }
  | { readonly kind: typeof ARRAY; readonly items: FieldCodec };

/** A field of a record. */
export interface TranscodedField {
  readonly jsonName: string;
  /** Of a JSON Pointer, with its slash. */
  readonly step: string;
  readonly codec: FieldCodec;
}
