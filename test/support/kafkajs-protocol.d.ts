// Parts of kafkajs that it has no types for: the other implementation that ours is held against.

declare module 'kafkajs/src/protocol/decoder.js' {
  export default class Decoder {
    constructor(bytes: Buffer);
    readInt8(): number;
    readInt16(): number;
    readInt32(): number;
    readInt64(): { toString(): string };
    readString(): string | null;
    readUVarIntString(): string | null;
    readBytes(): Buffer | null;
    readArray<T>(one: (decoder: Decoder) => T): T[];
    readTaggedFields(): unknown;
  }
}

declare module 'kafkajs/src/protocol/encoder.js' {
  export default class Encoder {
    readonly buffer: Buffer;
    writeInt8(value: number): this;
    writeInt16(value: number): this;
    writeInt32(value: number): this;
    writeInt64(value: number | string): this;
    writeString(value: string | null): this;
    writeBytes(value: Buffer | null): this;
    writeArray(items: readonly Encoder[]): this;
    writeEncoder(value: Encoder): this;
  }
}

declare module 'kafkajs/src/protocol/recordBatch/v0/decoder.js' {
  import type Decoder from 'kafkajs/src/protocol/decoder.js';

  export interface DecodedRecord {
    readonly offset: string;
    readonly timestamp: string;
    readonly key: Buffer | null;
    readonly value: Buffer | null;
    readonly headers: Readonly<Record<string, Buffer | readonly Buffer[] | undefined>>;
  }

  export interface DecodedBatch {
    readonly firstOffset: string;
    readonly firstTimestamp: string;
    readonly maxTimestamp: string;
    readonly partitionLeaderEpoch: number;
    readonly inTransaction: boolean;
    readonly isControlBatch: boolean;
    readonly lastOffsetDelta: number;
    readonly producerId: string;
    readonly producerEpoch: number;
    readonly firstSequence: number;
    readonly records: readonly DecodedRecord[];
  }

  export default function decodeBatch(bytes: Decoder): Promise<DecodedBatch>;
}

declare module 'kafkajs/src/protocol/error.js' {
  import type { KafkaJSProtocolError } from 'kafkajs';

  const protocolErrors: { createErrorFromCode(code: number): KafkaJSProtocolError };
  export default protocolErrors;
}
