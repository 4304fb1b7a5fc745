import { CLOSE_ARRAY, COMMA, OPEN_ARRAY } from '../json/json-bytes.ts';
import { writeBlock } from './write-block.ts';
import { allOrNothing, readingValues } from './field-codec.ts';
import type { AvroValue, FieldCodec } from './field-codec.ts';

/** An array of values of one type. */
export function arrayCodec(items: FieldCodec): FieldCodec {
  const readItem = readingValues(items);
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
    read: allOrNothing((source, out, residue) => {
      if (!source.takes(OPEN_ARRAY)) return false;
      const start = out.length;
      out.byte(0); // the end, or the count once that is known
      if (source.takes(CLOSE_ARRAY)) return true;
      let count = 0;
      do {
        source.skipSpace();
        residue.step = count;
        if (source.takesNull()) {
          residue.noteNull();
          items.writePlaceholder(out);
        } else if (!readItem(source, out, residue)) items.writePlaceholder(out);
        count += 1;
      } while (source.takes(COMMA));
      if (!source.takes(CLOSE_ARRAY)) return false;
      out.longAt(start, count);
      out.byte(0);
      return true;
    }),
    toJson: (value) => (value as AvroValue[]).map(items.toJson),
    writePlaceholder: (out) => out.long(0),
  };
}
