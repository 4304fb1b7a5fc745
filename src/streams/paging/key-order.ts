import { PageRecord } from '../records/page-record.ts';
import type { PageRecords } from '../records/page-records.ts';

/** How a reading's records are sorted by their keys: `none` once two neighbours contradict, null before two have differed. */
export type KeyOrder = 'asc' | 'desc' | 'none' | null;

/** The order after one more page. Pages overlap, so each needs only be compared within itself. */
export function keyOrderAfter(order: KeyOrder, records: PageRecords): KeyOrder {
  if (order === 'none') return order;
  let shown: KeyOrder = order;
  let before: KeyBytes | undefined;
  const compareNext = (bytes: Uint8Array, from: number, to: number) => {
    const key = { bytes, from, to };
    if (before) shown = orderWith(shown, compareKeys(before, key));
    before = key;
  };
  for (const part of records.parts) {
    if (!(part instanceof PageRecord)) part.run.eachKey(compareNext);
    else if (part.key !== undefined) {
      const bytes = Buffer.from(part.key);
      compareNext(bytes, 0, bytes.length);
    }
  }
  return shown;
}

/** A key in UTF-8: the bytes from `from` up to, not including, `to`. Keys of runs stay packed, as most pages are known and swept often. */
interface KeyBytes {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

function orderWith(order: KeyOrder, sign: number): KeyOrder {
  if (sign === 0 || order === 'none') return order;
  const next = sign < 0 ? 'asc' : 'desc';
  return order === null || order === next ? next : 'none';
}

/** Compares whole numbers by their value, all other keys by their bytes, which is the order of their code points. */
function compareKeys(one: KeyBytes, other: KeyBytes): number {
  const longer = lengthOf(one) - lengthOf(other);
  if (longer !== 0 && isWholeNumber(one) && isWholeNumber(other)) return longer;
  const common = Math.min(lengthOf(one), lengthOf(other));
  for (let at = 0; at < common; at += 1) {
    const sign = one.bytes[one.from + at]! - other.bytes[other.from + at]!;
    if (sign !== 0) return sign;
  }
  return longer;
}

const lengthOf = ({ from, to }: KeyBytes) => to - from;

const [ZERO, NINE] = [0x30, 0x39];

/** Whether a key is decimal digits without a leading zero. */
function isWholeNumber({ bytes, from, to }: KeyBytes): boolean {
  if (to === from || (bytes[from] === ZERO && to > from + 1)) return false;
  for (let at = from; at < to; at += 1) {
    if (bytes[at]! < ZERO || bytes[at]! > NINE) return false;
  }
  return true;
}
