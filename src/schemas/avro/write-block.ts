import type { AvroOutput } from './avro-output.ts';

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
