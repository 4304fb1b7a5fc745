import avro from 'avsc';
import { asBuffer, avroWriter } from './avro-bytes.ts';
import type { RecordSchema } from './avro-schema.ts';

/** A record that is ours, not the API's: as plain as its schema, times in ms since 1970. */
export interface FlatCodec<T> {
  /** The schema to register. */
  readonly schema: RecordSchema;
  /** @throws Error when the value isn't one of the schema. */
  encode(value: T): Buffer;
  /** @throws Error when the bytes aren't a value of the schema. */
  decode(bytes: Uint8Array): T;
}

/** The codec for a schema of one's own, whose fields are those of `T`. */
export function createFlatCodec<T extends object>(schema: RecordSchema): FlatCodec<T> {
  const type = avro.Type.forSchema(schema as avro.Schema, { omitRecordMethods: true });
  return {
    schema,
    encode: avroWriter(type),
    decode: (bytes) => ({ ...(type.fromBuffer(asBuffer(bytes)) as T) }),
  };
}
