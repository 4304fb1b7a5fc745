import type { AvroOutput } from './avro-output.ts';
import type { AvroValue, FieldCodec } from './field-codec.ts';
import type { JsonValue } from '../json/json.ts';
import type { Residue } from './residue.ts';
import { ARRAY } from './transcoder/layout.ts';
import { writeBlock } from './write-block.ts';

/** An array of values of one type. */
export function arrayCodec(items: FieldCodec): FieldCodec {
  return {
    write: (value, out, residue) => {
      if (!Array.isArray(value)) return false;
      residue.enter();
      writeBlock(out, value, (item, index) => {
        residue.step = index;
        writeItem(items, item, out, residue);
      });
      residue.leave();
      return true;
    },
    transcoded: { kind: ARRAY, items },
    toJson: (value) => (value as AvroValue[]).map(items.toJson),
    writePlaceholder: (out) => out.long(0),
  };
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
