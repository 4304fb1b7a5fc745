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
} from './scan/layout.ts';

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
  /** What a scan reads from bytes, and writes as `write` does. */
  readonly scan: ScanType;
  readonly toJson: (value: AvroValue) => JsonValue;
  /** Writes what stands in an array for an element that isn't held. */
  readonly writePlaceholder: (out: AvroOutput) => void;
}

/** What a scan has to know of a type to read its values: see `scan/wasm/scan.ts`. */
export type ScanType =
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
  | { readonly kind: typeof RECORD; readonly fields: readonly ScanField[] }
  | { readonly kind: typeof ARRAY; readonly items: FieldCodec };

/** A field of a record. */
export interface ScanField {
  readonly jsonName: string;
  /** Of a JSON Pointer, with its slash. */
  readonly step: string;
  readonly codec: FieldCodec;
}
