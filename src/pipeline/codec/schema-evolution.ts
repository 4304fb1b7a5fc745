import { isDeepStrictEqual } from 'node:util';
import { CellarstreamError } from '../../core/errors.ts';
import { envelopeCodec, envelopeSchema } from '../../schemas/events/envelope.ts';
import type { EnvelopeCodec } from '../../schemas/events/envelope.ts';
import type { RecordSchema } from '../../schemas/avro/avro-schema.ts';
import { growSchema, withImageFields } from '../../schemas/avro/infer.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import { addFields } from '../../schemas/avro/merge-schema.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import { unframe } from '../../schemas/registry/wire.ts';
import type { ImageCodec } from '../../streams/records/page-record.ts';
import type { EncodingOptions } from '../../streams/decode/decoder.ts';

/** A registered schema, and its codec for events. */
export interface CurrentSchema {
  readonly schemaId: number;
  readonly codec: EnvelopeCodec;
}

/** An encoded image (a record as it is published), and the id of the schema with which it is encoded. */
export interface WrittenImage {
  readonly schemaId: number;
  readonly bytes: Buffer;
}

/**
 * The schemas of one resource's events: the current one, to which fields are added when records have new ones, and the earlier ones with
 * which older images were encoded.
 */
export interface SchemaEvolution {
  /** The current schema; undefined until the first record is encoded, if the resource has no described fields and no registered schema. */
  readonly current: () => CurrentSchema | undefined;
  /**
   * Encodes records as images. If the current schema lacks a field of theirs, a schema with that field is registered first. Calls must not
   * overlap.
   */
  readonly encode: (
    records: readonly JsonObject[],
    keyFields: readonly string[],
  ) => Promise<readonly Buffer[]>;
  /**
   * Encodes the image of the record that begins at a given byte of a page, and extracts the requested fields. Undefined if there is no
   * record at that byte, if the current schema lacks a field of it, or if there is no current schema.
   */
  readonly encodeNow: EncodingOptions['encode'];
  /** Loads a schema from the registry. To be called before {@link inCurrent} for images that were encoded with the schema. */
  readonly load: (schemaId: number) => Promise<void>;
  /** Codec that encodes and decodes records with the current schema. Changes when a field is added to the schema. */
  readonly values: ImageCodec;
  /**
   * Converts an image to the current schema, so that a field added to the schema since does not look like a change of the record. The
   * image's schema must have been loaded.
   */
  readonly inCurrent: (image: WrittenImage) => Buffer;
  /** Decodes an event: its sequence, and the image after it (null after a deletion). */
  readonly imageIn: (event: Buffer) => Promise<{ sequence: number; image: WrittenImage | null }>;
}

export interface SchemaEvolutionOptions {
  readonly registry: Registry;
  readonly subject: string;
  readonly resource: string;
  /** Fields from the API's description, which the first schema already has. Default none. */
  readonly described?: RecordSchema | undefined;
  /** Called with the id of each schema that becomes the current one. */
  readonly onVersion?: (schemaId: number) => void;
  /** Awaited after every {@link RECORDS_PER_TURN} records; should resolve in a later turn of the event loop. Default: resolves at once. */
  readonly pause?: () => Promise<unknown>;
  /** Compiles the codec of an event schema; may cache. Default {@link envelopeCodec}. */
  readonly compile?: (schema: RecordSchema) => EnvelopeCodec;
}

/** Number of records encoded in one turn of the event loop. Too large: other work, such as heartbeats, is delayed. */
const RECORDS_PER_TURN = 250;

/**
 * Opens the schemas of a subject of the registry, starting from the registry's latest version, so that a restart keeps the fields inferred
 * before.
 *
 * @throws CellarstreamError `REGISTRY_UNREACHABLE`, `REGISTRY_REFUSED`, `TLS_REFUSED`.
 */
export async function openSchemaEvolution(
  options: SchemaEvolutionOptions,
): Promise<SchemaEvolution> {
  const { registry, subject, resource, described, onVersion } = options;
  const { compile = envelopeCodec, pause = () => Promise.resolve() } = options;
  const known = new Map<number, EnvelopeCodec>();
  let current: CurrentSchema | undefined;
  /** The registry's latest version of the schema, as last read: it is compiled once, and not registered again. */
  let newest: CurrentSchema | undefined;

  const latest = async (): Promise<RecordSchema | undefined> => {
    const found = await registry.latest(subject);
    if (!found) return described;
    const codec = codecOf(compile, found.schema, `version ${found.version} of ${subject}`);
    newest = { schemaId: found.id, codec };
    const schema = withImageFields(codec.values.schema);
    return described ? addFields(schema, described) : schema;
  };
  const register = async (values: RecordSchema): Promise<void> => {
    const schema = envelopeSchema(values, resource);
    const isNewest = newest !== undefined && isDeepStrictEqual(schema, newest.codec.schema);
    const codec = isNewest ? newest!.codec : compile(schema);
    const schemaId = isNewest ? newest!.schemaId : await registry.register(subject, codec.schema);
    if (schemaId !== current?.schemaId) onVersion?.(schemaId);
    known.set(schemaId, codec);
    current = { schemaId, codec };
  };
  const refuse = (): never => {
    throw new Error(`no record of ${resource} has been seen yet`);
  };
  const load = async (schemaId: number): Promise<EnvelopeCodec> => {
    const codec =
      known.get(schemaId) ??
      codecOf(compile, await registry.schemaById(schemaId), `schema ${schemaId}`);
    known.set(schemaId, codec);
    return codec;
  };

  const hold = async (records: readonly JsonObject[], keyFields: readonly string[]) => {
    const grown = (from: RecordSchema | undefined) =>
      growSchema(from, records, { resource, keyFields });
    const before = current?.codec.values.schema;
    const after = grown(before);
    if (after === before) return;
    try {
      await register(after);
    } catch (error) {
      // Another process may have registered the same field with another type: its version wins.
      if (!(error instanceof CellarstreamError) || error.code !== 'REGISTRY_REFUSED') throw error;
      const newest = await latest();
      if (!newest || isDeepStrictEqual(newest, before)) throw error;
      await register(grown(newest));
    }
  };

  const start = await latest();
  if (start) await register(start);

  return {
    current: () => current,
    encode: async (records, keyFields) => {
      const encoded = async (values: EnvelopeCodec['values'], onUnknown?: () => void) => {
        const images: Buffer[] = [];
        for (let from = 0; from < records.length; from += RECORDS_PER_TURN) {
          if (from > 0) await pause();
          const slice = records.slice(from, from + RECORDS_PER_TURN);
          images.push(...slice.map((record) => values.encode(record, onUnknown)));
        }
        return images;
      };
      if (records.length === 0) return [];
      const before = current;
      let isLacking = before === undefined;
      const images = before && (await encoded(before.codec.values, () => (isLacking = true)));
      if (isLacking) await hold(records, keyFields);
      return current === before ? images! : encoded(current!.codec.values);
    },
    encodeNow: (page, at, wanted) => {
      if (!current) return undefined;
      const { values } = current.codec;
      let isLacking = false;
      const read = values.transcode(page, at, wanted, () => (isLacking = true));
      if (!read || isLacking) return undefined;
      const { image, end, fields, instants } = read;
      return { image, end, fields, instants, codec: values };
    },
    load: async (schemaId) => void (await load(schemaId)),
    get values() {
      return current?.codec.values ?? { encode: refuse, decode: refuse };
    },
    inCurrent: ({ schemaId, bytes }) => {
      const { schemaId: now, codec } = current ?? refuse();
      if (schemaId === now) return bytes;
      const written = known.get(schemaId);
      if (!written) throw new Error(`the schema ${schemaId} of a stored image was not loaded`);
      return codec.values.encode(written.values.decode(bytes));
    },
    imageIn: async (event) => {
      const { schemaId, payload } = unframe(event);
      const { after, sequence } = (await load(schemaId)).images(payload);
      return { sequence, image: after && { schemaId, bytes: after } };
    },
  };
}

/** Compiles a schema from the registry. @throws CellarstreamError `REGISTRY_REFUSED` if Cellarstream can't have written the schema. */
function codecOf(
  compile: NonNullable<SchemaEvolutionOptions['compile']>,
  schema: RecordSchema,
  about: string,
): EnvelopeCodec {
  try {
    return compile(schema);
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : '';
    throw new CellarstreamError(
      'REGISTRY_REFUSED',
      `${about} in the schema registry is not one of Cellarstream's (${what}): delete it there, or set another TOPIC_PREFIX`,
      { cause },
    );
  }
}
