// Encodes requests and decodes responses of Kafka's protocol: https://kafka.apache.org/protocol

/** A request of Kafka's protocol, and the function that decodes its response: https://kafka.apache.org/protocol#protocol_messages */
export interface Call<T> {
  readonly name: string;
  readonly key: number;
  readonly version: number;
  /** Whether this version of the request has tagged fields (KIP-482). They are left empty. */
  readonly isFlexible?: true;
  readonly body: Buffer;
  readonly read: (answer: ProtocolReader) => T;
  /** Position of the throttle time in the response. `behind`: after all other fields. Default: before all other fields. */
  readonly throttlePosition?: 'behind';
}

/**
 * The requests that this client sends, by name, with their numbers and versions. All brokers since Kafka 2.7 support these versions, except
 * for `DescribeTransactions`, which needs Kafka 3.0.
 */
const REQUESTS = {
  Produce: { key: 0, version: 7, throttlePosition: 'behind' },
  ListOffsets: { key: 2, version: 4 },
  Metadata: { key: 3, version: 8 },
  OffsetFetch: { key: 9, version: 5 },
  FindCoordinator: { key: 10, version: 2 },
  JoinGroup: { key: 11, version: 5 },
  Heartbeat: { key: 12, version: 3 },
  LeaveGroup: { key: 13, version: 3 },
  SyncGroup: { key: 14, version: 3 },
  DescribeGroups: { key: 15, version: 3 },
  CreateTopics: { key: 19, version: 4 },
  InitProducerId: { key: 22, version: 4, isFlexible: true },
  AddPartitionsToTxn: { key: 24, version: 1 },
  EndTxn: { key: 26, version: 1 },
  DescribeConfigs: { key: 32, version: 1 },
  DescribeTransactions: { key: 65, version: 0, isFlexible: true },
} as const;

/** Creates a request. @param fields Encoded fields of its body, in their order. */
export function createCall<T>(
  name: keyof typeof REQUESTS,
  fields: readonly Buffer[],
  read: Call<T>['read'],
): Call<T> {
  return { name, ...REQUESTS[name], body: Buffer.concat(fields), read };
}

/** A decoded response, and how long the broker throttles this client, in ms. */
interface Answer<T> {
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

/** Decodes the response to a call. @param bytes The part of the response after the correlation id. */
export function readAnswer<T>(call: Call<T>, bytes: Buffer): Answer<T> {
  const answer = protocolReader(bytes);
  if (call.isFlexible) answer.int8(); // no tags
  if (call.throttlePosition === 'behind')
    return { value: call.read(answer), throttleMs: answer.int32() };
  return { throttleMs: answer.int32(), value: call.read(answer) };
}

/** Returns the bytes of a request that follow the client id in its header. */
export function bodyOf({ isFlexible, body }: Call<unknown>): Buffer {
  return isFlexible ? Buffer.concat([NO_TAGS, body]) : body;
}

type ProtocolReader = ReturnType<typeof protocolReader>;

/** Creates the functions that read the fields of a response one after the other: https://kafka.apache.org/protocol#protocol_types */
export function protocolReader(bytes: Buffer) {
  let at = 0;
  const view = (length: number) => {
    const end = at + Math.max(0, length);
    if (end > bytes.length) throw new RangeError('the response ends before its last field');
    const part = bytes.subarray(at, end);
    at = end;
    return part;
  };
  const reader = {
    int8: (): number => bytes.readInt8((at += 1) - 1),
    int16: (): number => bytes.readInt16BE((at += 2) - 2),
    int32: (): number => bytes.readInt32BE((at += 4) - 4),
    int64: (): bigint => bytes.readBigInt64BE((at += 8) - 8),
    string: (): string | null => {
      const length = reader.int16();
      return length < 0 ? null : view(length).toString();
    },
    /** Reads an unsigned varint. In versions with tagged fields, lengths and counts are encoded as varints of their value plus one. */
    uvarint: (): number => {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = bytes.readUInt8((at += 1) - 1);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
      }
    },
    compactString: (): string | null => {
      const length = reader.uvarint() - 1;
      return length < 0 ? null : view(length).toString();
    },
    /** Reads a 32-bit length and returns a view of that many bytes; empty if the length is -1. */
    bytes: (): Buffer => view(reader.int32()),
    array: <T>(one: () => T): T[] => {
      const items = [];
      for (let left = reader.int32(); left > 0; left--) items.push(one());
      return items;
    },
  };
  return reader;
}

/** Empty set of tagged fields (KIP-482). In request versions with tagged fields, each structure ends with such a set. */
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

/** Encodes a string: its length in bytes plus one as an unsigned varint, then its bytes. Null is encoded as the varint 0. */
export function compactString(text: string | null): Buffer {
  if (text === null) return Buffer.of(0);
  const length: number[] = [];
  for (let rest = Buffer.byteLength(text) + 1; rest > 0; rest >>>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
  }
  return Buffer.concat([Buffer.from(length), Buffer.from(text)]);
}

export function bytes(value: Buffer): Buffer {
  return Buffer.concat([int32(value.length), value]);
}

/** Encodes an array. @param one Encodes an item, as one or several fields. */
export function array<T>(items: readonly T[], one: (item: T) => Buffer | Buffer[]): Buffer {
  return Buffer.concat([int32(items.length), ...items.flatMap(one)]);
}

/** Error of a call that was not sent. No broker has executed the call. */
export class CallNotSent extends Error {
  override readonly name = 'NotSent';
}

/** Error of a call that was sent and got no response, or none that can be decoded. The broker may have executed the call. */
export class CallUnanswered extends Error {
  override readonly name = 'NoAnswer';
}

/** Returns the cause of a {@link CallNotSent} or {@link CallUnanswered}, usually an error of kafkajs. Returns any other error unchanged. */
export function kafkajsCauseOf(error: unknown): unknown {
  return error instanceof CallUnanswered || error instanceof CallNotSent ? error.cause : error;
}
