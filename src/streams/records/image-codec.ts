import type { JsonObject } from '../../schemas/json/json.ts';

/** A record in the bytes that images are compared by, and back. */
export interface ImageCodec {
  /** Equal records, key order aside, give equal bytes. */
  encode(record: JsonObject): Buffer;
  /** The record that was encoded. */
  decode(bytes: Buffer): JsonObject;
}
