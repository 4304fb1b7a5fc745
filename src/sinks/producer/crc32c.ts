/** Castagnoli's polynomial, reflected: the one that Kafka's batches are checked with. */
const POLYNOMIAL = 0x82f63b78;
/** So many bytes are taken at once, each by a table of its own. */
const SLICES = 8;

const TABLES: readonly Int32Array[] = tables();

/** CRC-32C of bytes, unsigned; `seed` is that of what stands before them. */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as Tables;
  const whole = bytes.length - (bytes.length % SLICES);
  let crc = ~seed;
  let at = 0;
  for (; at < whole; at += SLICES) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc =
      t7[crc & 0xff]! ^
      t6[(crc >>> 8) & 0xff]! ^
      t5[(crc >>> 16) & 0xff]! ^
      t4[crc >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at++) crc = t0[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

type T = Int32Array;
type Tables = readonly [T, T, T, T, T, T, T, T];

/** By slice: what a byte does to the sum when so many others follow it. */
function tables(): Int32Array[] {
  const first = Int32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    return crc;
  });
  const all = [first];
  while (all.length < SLICES) {
    all.push(all.at(-1)!.map((crc) => first[crc & 0xff]! ^ (crc >>> 8)));
  }
  return all;
}
