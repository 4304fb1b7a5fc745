// Parts of a request of Kafka's protocol: https://kafka.apache.org/protocol#protocol_types

/** Newer requests end with fields by their numbers: here always none. */
export const NO_TAGS = Buffer.of(0);

export function int8(value: number): Buffer {
  return Buffer.of(value);
}

export function int16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeInt16BE(value);
  return bytes;
}

export function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function int64(value: bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

export function string(text: string | null): Buffer {
  if (text === null) return int16(-1);
  return Buffer.concat([int16(Buffer.byteLength(text)), Buffer.from(text)]);
}

/** Its length is one more than it has bytes, in seven bits a byte. */
export function compactString(text: string | null): Buffer {
  if (text === null) return Buffer.of(0);
  const length: number[] = [];
  for (let rest = Buffer.byteLength(text) + 1; rest > 0; rest >>>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
  }
  return Buffer.concat([Buffer.from(length), Buffer.from(text)]);
}

/** Behind their length of 32 bits. */
export function bytes(value: Buffer): Buffer {
  return Buffer.concat([int32(value.length), value]);
}

export function array<T>(items: readonly T[], one: (item: T) => Buffer): Buffer {
  return Buffer.concat([int32(items.length), ...items.map(one)]);
}
