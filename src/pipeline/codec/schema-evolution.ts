import { isDeepStrictEqual } from 'node:util';
import { CellarstreamError } from '../../core/errors.ts';
import { envelopeCodec, envelopeSchema } from '../../schemas/events/envelope.ts';
import type { EnvelopeCodec } from '../../schemas/events/envelope.ts';
import type { RecordSchema } from '../../schemas/avro/avro-schema.ts';
import { growSchema, withOwnFields } from '../../schemas/avro/infer.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import { addFields } from '../../schemas/avro/merge-schema.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import { unframe } from '../../schemas/registry/wire.ts';
import type { ImageCodec } from '../../streams/records/page-record.ts';
import type { EncodingOptions } from '../../streams/decode/decoder.ts';

/** A schema as it is registered, and what it writes and reads. */
export interface CurrentSchema {
  readonly schemaId: number;
  readonly codec: EnvelopeCodec;
}

/** An image, and the schema that it is written in. */
export interface WrittenImage {
  readonly schemaId: number;
  readonly bytes: Buffer;
}

/** The schemas of one resource's events: the current one, which grows, and those of older images. */
export interface SchemaEvolution {
  /** Undefined until a first record has been seen, for a resource that nobody has described. */
  readonly current: () => CurrentSchema | undefined;
  /**
   * The images of records, in a schema that has a field for whatever they hold: a current one that has
   * to grow for it is registered before this resolves. To be called once at a time.
   */
  readonly encode: (
    records: readonly JsonObject[],
    keyFields: readonly string[],
  ) => Promise<readonly Buffer[]>;
  /**
   * The image of the record that begins at a place of a page, with fields that are wanted; undefined if it isn't one, if
   * the current schema has to grow for it, or if there is none yet.
   */
  readonly encodeNow: EncodingOptions['encode'];
  /** Makes ready for images of a schema. */
  readonly load: (schemaId: number) => Promise<void>;
  /** Records in the bytes of the schema that is the current one as this is read. */
  readonly values: ImageCodec;
  /**
   * An image in the bytes of the current schema: a schema that has grown since changes no record.
   * Its own schema must have been loaded.
   */
  readonly inCurrent: (image: WrittenImage) => Buffer;
  /** The image that an event left behind, and its sequence. */
  readonly imageIn: (event: Buffer) => Promise<{ sequence: number; image: WrittenImage | null }>;
}

export interface SchemaEvolutionOptions {
  readonly registry: Registry;
  readonly subject: string;
  readonly resource: string;
  /** Fields that the schema has from the beginning. */
  readonly described?: RecordSchema | undefined;
  readonly onVersion?: (schemaId: number) => void;
  /** Waited for between some records and the next ones: a turn of the event loop. Default no wait. */
  readonly pause?: () => Promise<unknown>;
  /** Compiles a schema of events. Default {@link envelopeCodec}; one that remembers is as good. */
  readonly compile?: (schema: RecordSchema) => EnvelopeCodec;
}

/** Records that are encoded at one go: a page of them would hold up everything else. */
const SLICE = 250;

/**
 * Opens it at the registry's latest version, so that a restart goes on from what was inferred
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
  /** As it was found last: it is compiled once, and need not be registered again. */
  let newest: CurrentSchema | undefined;

  const latest = async (): Promise<RecordSchema | undefined> => {
    const found = await registry.latest(subject);
    if (!found) return described;
    const codec = codecOf(compile, found.schema, `version ${found.version} of ${subject}`);
    newest = { schemaId: found.id, codec };
    const schema = withOwnFields(codec.values.schema);
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
      // Another process may have added the same field as another type: what it registered holds.
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
        for (let from = 0; from < records.length; from += SLICE) {
          if (from > 0) await pause();
          const slice = records.slice(from, from + SLICE);
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

/** @throws CellarstreamError `REGISTRY_REFUSED` when the schema is not of our making. */
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
