// Confluent's wire format: a zero byte, the schema's id in 4 bytes (big-endian), the Avro bytes.

import type { AvroOutput } from '../avro/avro-output.ts';

const MAGIC = 0;
const HEADER_BYTES = 5;

/** Avro bytes as the value of a message. */
export function frame(schemaId: number, avro: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(HEADER_BYTES + avro.length);
  message.writeUInt8(MAGIC, 0);
  message.writeUInt32BE(schemaId, 1);
  message.set(avro, HEADER_BYTES);
  return message;
}

/** What stands before the Avro bytes in {@link frame}, for who writes those behind it. */
export function writeHeader(out: AvroOutput, schemaId: number): void {
  for (const byte of [MAGIC, schemaId >>> 24, schemaId >>> 16, schemaId >>> 8, schemaId]) {
    out.byte(byte & 0xff);
  }
}

/** Whether {@link unframe} takes a message. */
export function isFramed(message: Buffer): boolean {
  return message.length >= HEADER_BYTES && message[0] === MAGIC;
}

/** What {@link frame} put together. */
export interface Framed {
  readonly schemaId: number;
  /** A view of the message, not a copy. */
  readonly payload: Buffer;
}

/** @throws Error when the message isn't in this format. */
export function unframe(message: Buffer): Framed {
  if (message.length < HEADER_BYTES) {
    throw new Error(`no Confluent frame: ${message.length} bytes, it takes at least 5`);
  }
  if (message[0] !== MAGIC) {
    throw new Error(`no Confluent frame: it begins with ${message[0]} instead of 0`);
  }
  return { schemaId: message.readUInt32BE(1), payload: message.subarray(HEADER_BYTES) };
}
