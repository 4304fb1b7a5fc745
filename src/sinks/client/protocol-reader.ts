/** An answer of Kafka's protocol, read from front to back: https://kafka.apache.org/protocol#protocol_types */
export interface ProtocolReader {
  int8(): number;
  int16(): number;
  int32(): number;
  int64(): bigint;
  string(): string | null;
  /** Of newer answers: a length, or a number of items, and one more than that. */
  uvarint(): number;
  compactString(): string | null;
  /** A view of so many bytes, behind their length of 32 bits; empty where that is -1. */
  bytes(): Buffer;
  array<T>(one: () => T): T[];
}

export function protocolReader(bytes: Buffer): ProtocolReader {
  let at = 0;
  const view = (length: number) => {
    const end = at + Math.max(0, length);
    if (end > bytes.length) throw new RangeError('an answer of Kafka ends before its fields do');
    const part = bytes.subarray(at, end);
    at = end;
    return part;
  };
  const reader: ProtocolReader = {
    int8: () => bytes.readInt8((at += 1) - 1),
    int16: () => bytes.readInt16BE((at += 2) - 2),
    int32: () => bytes.readInt32BE((at += 4) - 4),
    int64: () => bytes.readBigInt64BE((at += 8) - 8),
    string: () => {
      const length = reader.int16();
      return length < 0 ? null : view(length).toString();
    },
    uvarint: () => {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = bytes.readUInt8((at += 1) - 1);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
      }
    },
    compactString: () => {
      const length = reader.uvarint() - 1;
      return length < 0 ? null : view(length).toString();
    },
    bytes: () => view(reader.int32()),
    array: (one) => {
      const items = [];
      for (let left = reader.int32(); left > 0; left--) items.push(one());
      return items;
    },
  };
  return reader;
}
