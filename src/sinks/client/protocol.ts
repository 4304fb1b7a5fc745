// Requests and answers of Kafka's protocol as bytes: https://kafka.apache.org/protocol

/** A request, and how its answer is read: https://kafka.apache.org/protocol#protocol_messages */
export interface Call<T> {
  readonly name: string;
  readonly key: number;
  readonly version: number;
  /** Newer requests and answers carry fields by their numbers: here always none. */
  readonly isFlexible?: true;
  readonly body: Buffer;
  readonly read: (answer: ProtocolReader) => T;
  /** Where an answer says for how long the broker reads nothing more of this client. Default in front. */
  readonly saysThrottle?: 'behind';
}

/** What a broker said, and for how long it reads nothing more of this client, ms. */
export interface Answer<T> {
  readonly value: T;
  readonly throttleMs: number;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export function nameOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

/** What a call is read from: what comes behind the number that tells which call it answers. */
export function readAnswer<T>(call: Call<T>, bytes: Buffer): Answer<T> {
  const answer = protocolReader(bytes);
  if (call.isFlexible) answer.int8(); // no tags
  if (call.saysThrottle === 'behind')
    return { value: call.read(answer), throttleMs: answer.int32() };
  const throttleMs = answer.int32();
  return { value: call.read(answer), throttleMs };
}

/** What a call has behind the name of the client. */
export function bodyOf({ isFlexible, body }: Call<unknown>): Buffer {
  return isFlexible ? Buffer.concat([NO_TAGS, body]) : body;
}

/** An answer of Kafka's protocol, read from front to back: https://kafka.apache.org/protocol#protocol_types */
interface ProtocolReader {
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

/** A call that no broker has got: nothing has come of it. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
}

/** A call that went out and was not answered: nobody knows what has come of it. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** What kafkajs has thrown, where a connection is to blame. */
export function kafkasOf(error: unknown): unknown {
  return error instanceof NoAnswer || error instanceof NotSent ? error.cause : error;
}
