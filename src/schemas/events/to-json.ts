import type { RecordSchema } from '../avro/avro-schema.ts';
import { valueSchemaOf } from './envelope.ts';
import type { ChangeEvent } from './envelope.ts';
import { stringifyJson } from '../json/json.ts';
import type { JsonObject } from '../json/json.ts';
import { createRecordCodec } from '../avro/record-codec.ts';
import type { RecordCodec } from '../avro/record-codec.ts';

/** An event, of which only the images are looked at. */
export type ImagesOf<Image> = Pick<ChangeEvent<Image>, 'before' | 'after'>;

/**
 * The API's record as JSON text, from an event: of `after`, or of `before` where `after` is null.
 * Null where neither image is there.
 *
 * Every number is written as it was sent (`-0`, `1e400`, 64-bit ids), which `JSON.stringify` can't
 * do; null and absent stay apart. The keys are in no order to rely on.
 *
 * @param event As `EnvelopeCodec.decode` gives it: its images are JSON already.
 */
export function toJson(event: ImagesOf<JsonObject>): string | null;
/**
 * The same from an event that avsc decoded: its images have Avro's field names, with `nulls` and
 * `unmapped`.
 *
 * @param event As a type gives it that avsc made of `schema` with its default options: logical types
 * are left as the numbers and bytes underneath.
 * @param schema The schema of the envelope, parsed from the registry's text: avsc's own
 * `type.schema()` has lost the names in JSON. Compiled at the first event, so pass the same object
 * every time.
 * @throws TypeError when `schema` isn't one of an envelope.
 */
export function toJson(event: ImagesOf<unknown>, schema: RecordSchema): string | null;
export function toJson({ before, after }: ImagesOf<unknown>, schema?: RecordSchema): string | null {
  const image = after ?? before;
  if (image === null) return null;
  return stringifyJson(schema ? imageCodec(schema).toJson(image) : (image as JsonObject));
}

/** By the schema of the envelope: what compiles to the same may as well be shared by all. */
const imageCodecs = new WeakMap<RecordSchema, RecordCodec>();

function imageCodec(schema: RecordSchema): RecordCodec {
  let codec = imageCodecs.get(schema);
  if (!codec) imageCodecs.set(schema, (codec = createRecordCodec(valueSchemaOf(schema))));
  return codec;
}
