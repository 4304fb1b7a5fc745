import { writeBlock } from './write-block.ts';
import type { AvroValue, FieldCodec } from './field-codec.ts';
import { ARRAY } from './transcoder/layout.ts';

/** An array of values of one type. */
export function arrayCodec(items: FieldCodec): FieldCodec {
  return {
    write: (value, out, residue) => {
      if (!Array.isArray(value)) return false;
      residue.enter();
      writeBlock(out, value, (item, index) => {
        residue.step = index;
        if (item === null) {
          residue.noteNull();
          items.writePlaceholder(out);
        } else if (!items.write(item, out, residue)) {
          residue.noteValue(item);
          items.writePlaceholder(out);
        }
      });
      residue.leave();
      return true;
    },
    plain: { kind: ARRAY, items },
    toJson: (value) => (value as AvroValue[]).map(items.toJson),
    writePlaceholder: (out) => out.long(0),
  };
}
