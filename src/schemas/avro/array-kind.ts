import type { AvroOutput } from './avro-output.ts';
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY } from '../json/json-bytes.ts';
import { allOrNothing, readValue } from './kind.ts';
import type { AvroValue, Kind } from './kind.ts';

/** An array of values of one kind. */
export function arrayKind(items: Kind): Kind {
  return {
    write: (value, out, odd) => {
      if (!Array.isArray(value)) return false;
      writeBlock(out, value, (item, index) => {
        odd.path.push(index);
        if (item === null) {
          odd.noteNull();
          items.writePlaceholder(out);
        } else if (!items.write(item, out, odd)) {
          odd.noteValue(item);
          items.writePlaceholder(out);
        }
        odd.path.pop();
      });
      return true;
    },
    read: allOrNothing((source, out, odd) => {
      if (!source.takes(OPEN_ARRAY)) return false;
      const start = out.length;
      out.byte(0); // the end, or the count once that is known
      if (source.takes(CLOSE_ARRAY)) return true;
      let count = 0;
      do {
        source.skipSpace();
        odd.path.push(count);
        if (source.takesNull()) {
          odd.noteNull();
          items.writePlaceholder(out);
        } else if (!readValue(items, source, out, odd)) items.writePlaceholder(out);
        odd.path.pop();
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

/** An array or a map: its items in one block, if there are any, and the end. */
export function writeBlock<T>(
  out: AvroOutput,
  items: readonly T[],
  write: (item: T, index: number) => void,
): void {
  if (items.length > 0) {
    out.long(items.length);
    items.forEach(write);
  }
  out.long(0);
}
