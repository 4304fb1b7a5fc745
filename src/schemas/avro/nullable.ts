import type { AvroOutput } from './avro-output.ts';
import type { FieldCodec } from './field-codec.ts';
import type { JsonValue } from '../json/json.ts';
import type { Residue } from './residue.ts';
import { NULL_BRANCH, VALUE_BRANCH } from './transcoder/layout.ts';

/** A field that there is, as `["null", T]`. What its type doesn't hold is noted. */
export function writeNullable(
  codec: FieldCodec,
  value: JsonValue,
  out: AvroOutput,
  residue: Residue,
): void {
  if (value === null) {
    residue.noteNull();
    out.byte(NULL_BRANCH);
    return;
  }
  const start = out.length;
  out.byte(VALUE_BRANCH);
  if (codec.write(value, out, residue)) return;
  out.length = start;
  out.byte(NULL_BRANCH);
  residue.noteValue(value);
}
