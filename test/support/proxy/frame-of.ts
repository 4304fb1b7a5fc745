import { readRequest } from './kafka-frames.ts';
import type { KafkaRequest } from './kafka-frames.ts';

/** A text with its length before it, null in its place, a number as so many bytes, or bytes. */
export type Part = string | null | readonly [bytes: 1 | 2 | 4, value: number] | Buffer;

/** A frame of Kafka's protocol that consists of these, with its size before it. */
export function frame(...parts: readonly Part[]): Buffer {
  const body = Buffer.concat(parts.map(bytesOf));
  return Buffer.concat([int(4, body.length), body]);
}

/** A request of the client "client" with the correlation id 77. */
export function request(apiKey: number, version: number, ...body: readonly Part[]): KafkaRequest {
  return readRequest(frame([2, apiKey], [2, version], [4, 77], 'client', ...body));
}

export function int(bytes: 1 | 2 | 4, value: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeIntBE(value, 0, bytes);
  return buffer;
}

function bytesOf(part: Part): Buffer {
  if (part === null) return int(2, -1);
  if (Buffer.isBuffer(part)) return part;
  if (typeof part !== 'string') return int(...part);
  return Buffer.concat([int(2, Buffer.byteLength(part)), Buffer.from(part)]);
}
