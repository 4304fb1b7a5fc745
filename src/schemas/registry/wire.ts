// Confluent's wire format: a zero byte, the schema id in 4 bytes (big-endian), then the Avro bytes.

import type { AvroOutput } from '../avro/avro-output.ts';

const MAGIC = 0;
const HEADER_BYTES = 5;

/** Returns Avro bytes as a message in Confluent's wire format. */
export function frame(schemaId: number, avro: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(HEADER_BYTES + avro.length);
  message.writeUInt8(MAGIC, 0);
  message.writeUInt32BE(schemaId, 1);
  message.set(avro, HEADER_BYTES);
  return message;
}

/** Writes the header of Confluent's wire format; the caller writes the Avro bytes after it. */
export function writeHeader(out: AvroOutput, schemaId: number): void {
  for (const byte of [MAGIC, schemaId >>> 24, schemaId >>> 16, schemaId >>> 8, schemaId]) {
    out.byte(byte & 0xff);
  }
}

/** Whether a message has the header of Confluent's wire format, which {@link unframe} requires. */
export function isFramed(message: Buffer): boolean {
  return message.length >= HEADER_BYTES && message[0] === MAGIC;
}

/** A message in Confluent's wire format, split into schema id and Avro bytes. */
export interface Framed {
  readonly schemaId: number;
  /** The Avro bytes, as a view of the message, not a copy. */
  readonly payload: Buffer;
}

/**
 * Splits a message into schema id and Avro bytes.
 *
 * @throws Error when the message isn't in Confluent's wire format.
 */
export function unframe(message: Buffer): Framed {
  if (message.length < HEADER_BYTES) {
    throw new Error(
      `not in Confluent's wire format: ${message.length} bytes, at least 5 are needed`,
    );
  }
  if (message[0] !== MAGIC) {
    throw new Error(`not in Confluent's wire format: the first byte is ${message[0]} instead of 0`);
  }
  return { schemaId: message.readUInt32BE(1), payload: message.subarray(HEADER_BYTES) };
}
