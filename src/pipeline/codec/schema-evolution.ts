import { isDeepStrictEqual } from 'node:util';
import { CellarstreamError } from '../../core/errors.ts';
import { envelopeCodec, envelopeSchema } from '../../schemas/events/envelope.ts';
import type { EnvelopeCodec } from '../../schemas/events/envelope.ts';
import type { RecordSchema } from '../../schemas/avro/avro-schema.ts';
import { growSchema, withImageFields } from '../../schemas/avro/infer.ts';
import type { ListDescription } from '../../description/description.ts';
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

/** An image (a record as it is published), encoded with a registered schema. */
export interface WrittenImage {
  readonly schemaId: number;
  readonly bytes: Buffer;
}

export interface SchemaEvolutionOptions {
  readonly registry: Registry;
  readonly subject: string;
  /** The list, and its fields (`types`) in the API's description. The first registered schema already contains these fields. */
  readonly list: Pick<ListDescription, 'name' | 'namespace' | 'types'>;
  /** Called with the id of each schema that becomes the current one. */
  readonly onVersion?: (schemaId: number) => void;
  /** Awaited after every {@link RECORDS_PER_TURN} records; should resolve in a later turn of the event loop. Default: no pause. */
  readonly pause?: () => Promise<unknown>;
  /** Compiles a schema to its codec; may cache codecs. Default {@link envelopeCodec}. */
  readonly compile?: (schema: RecordSchema) => EnvelopeCodec;
}

/** Number of records encoded in one turn of the event loop. If it is too large, other work, such as heartbeats, is delayed. */
const RECORDS_PER_TURN = 250;

/**
 * The schemas of one resource's events: the current schema, and the earlier ones with which older images were encoded. The current schema
 * only gains fields.
 */
export class SchemaEvolution {
  readonly #options: SchemaEvolutionOptions;
  readonly #compile: (schema: RecordSchema) => EnvelopeCodec;
  /** Codecs of all schemas seen so far, by schema id. */
  readonly #codecs = new Map<number, EnvelopeCodec>();
  #current: CurrentSchema | undefined;
  /**
   * The registry's latest version of the schema, as last read. A schema equal to this version becomes the current one without being
   * compiled or registered again.
   */
  #latest: CurrentSchema | undefined;

  private constructor(options: SchemaEvolutionOptions) {
    this.#options = options;
    this.#compile = options.compile ?? envelopeCodec;
  }

  /**
   * Opens the schemas of a subject of the registry. The current schema is then the registry's latest version, extended by the fields in the
   * API's description; undefined if both are missing.
   *
   * @throws CellarstreamError `REGISTRY_UNREACHABLE`, `REGISTRY_REFUSED`, `TLS_REFUSED`.
   */
  static async open(options: SchemaEvolutionOptions): Promise<SchemaEvolution> {
    const evolution = new SchemaEvolution(options);
    const schema = await evolution.#readLatest();
    if (schema) await evolution.#register(schema);
    return evolution;
  }

  /** The current schema. Undefined until the first record is encoded, if neither the registry nor the API's description has fields. */
  get current(): CurrentSchema | undefined {
    return this.#current;
  }

  /** Codec of the current schema; another codec each time the schema has grown. Its methods throw while there is no current schema. */
  get values(): ImageCodec {
    const refuse = () => this.#currentSchema() as never;
    return this.#current?.codec.values ?? { encode: refuse, decode: refuse };
  }

  /**
   * Encodes records as images. If the records have fields that the current schema lacks, a schema with these fields is registered first.
   * Calls must not overlap.
   */
  async encode(
    records: readonly JsonObject[],
    keyFields: readonly string[],
  ): Promise<readonly Buffer[]> {
    if (records.length === 0) return [];
    const before = this.#current;
    let isLacking = before === undefined;
    const onUnknown = () => (isLacking = true);
    const images = before && (await this.#encodeAll(records, before.codec.values, onUnknown));
    if (isLacking) await this.#addFieldsOf(records, keyFields);
    return this.#current === before
      ? images!
      : this.#encodeAll(records, this.#current!.codec.values);
  }

  /**
   * Encodes the image of the record that begins at byte `at` of a page, and extracts the values of the fields that `wanted` names.
   * Undefined if there is no record at that byte, or if the current schema lacks a field of the record.
   */
  readonly encodeNow: EncodingOptions['encode'] = (page, at, wanted) => {
    if (!this.#current) return undefined;
    const { values } = this.#current.codec;
    let isLacking = false;
    const read = values.transcode(page, at, wanted, () => (isLacking = true));
    if (!read || isLacking) return undefined;
    const { image, end, fields, instants } = read;
    return { image, end, fields, instants, codec: values };
  };

  /**
   * Loads a schema from the registry, if it is not loaded yet, and returns its codec. To be called before {@link inCurrent} for images that
   * were encoded with the schema.
   */
  async load(schemaId: number): Promise<EnvelopeCodec> {
    const known = this.#codecs.get(schemaId);
    if (known) return known;
    const schema = await this.#options.registry.schemaById(schemaId);
    const codec = this.#compileRegistered(
      schema,
      `schema ${schemaId}`,
      'check that SCHEMA_REGISTRY_URL is the registry with which the topic was written. If it is, another program has written to the topic: stop that program and delete the topic',
    );
    this.#codecs.set(schemaId, codec);
    return codec;
  }

  /**
   * Converts an image to the current schema, so that it can be compared with newly encoded images. The image's schema must have been
   * loaded.
   */
  inCurrent({ schemaId, bytes }: WrittenImage): Buffer {
    const current = this.#currentSchema();
    if (schemaId === current.schemaId) return bytes;
    const written = this.#codecs.get(schemaId);
    if (!written)
      throw new Error(
        `schema ${schemaId} of the registry, with which a stored record of ${this.#options.list.name} was encoded, was not loaded when the list was opened. This is a bug of Cellarstream: report it`,
      );
    return current.codec.values.encode(written.values.decode(bytes));
  }

  /** Decodes an event: its sequence, and the image after it (null after a deletion). */
  async imageIn(event: Buffer): Promise<{ sequence: number; image: WrittenImage | null }> {
    const { schemaId, payload } = unframe(event);
    const { after, sequence } = (await this.load(schemaId)).images(payload);
    return { sequence, image: after && { schemaId, bytes: after } };
  }

  #currentSchema(): CurrentSchema {
    if (this.#current) return this.#current;
    throw new Error(
      `the schema of ${this.#options.list.name} was used before its first record was read, from which it is derived. This is a bug of Cellarstream: report it`,
    );
  }

  /**
   * Returns the registry's latest schema of images, extended by the fields in the API's description. If the registry has no version: the
   * schema in the description, if any.
   */
  async #readLatest(): Promise<RecordSchema | undefined> {
    const { registry, subject, list } = this.#options;
    const found = await registry.latest(subject);
    if (!found) return list.types;
    const codec = this.#compileRegistered(
      found.schema,
      `version ${found.version} of ${subject}`,
      'delete this version there',
    );
    this.#latest = { schemaId: found.id, codec };
    const schema = withImageFields(codec.values.schema);
    return list.types ? addFields(schema, list.types) : schema;
  }

  /**
   * Sets the current schema: the event schema for images with the schema `values`. Registers it unless it equals the registry's latest
   * version.
   */
  async #register(values: RecordSchema): Promise<void> {
    const { registry, subject, list, onVersion } = this.#options;
    const schema = envelopeSchema(values, list.name, list.namespace);
    const latest = isDeepStrictEqual(schema, this.#latest?.codec.schema) ? this.#latest : undefined;
    const codec = latest?.codec ?? this.#compile(schema);
    const schemaId = latest?.schemaId ?? (await registry.register(subject, codec.schema));
    if (schemaId !== this.#current?.schemaId) onVersion?.(schemaId);
    this.#codecs.set(schemaId, codec);
    this.#current = { schemaId, codec };
  }

  /** Compiles a schema from the registry. @throws CellarstreamError `REGISTRY_REFUSED` if Cellarstream can't have written the schema. */
  #compileRegistered(schema: RecordSchema, about: string, advice: string): EnvelopeCodec {
    try {
      return this.#compile(schema);
    } catch (cause) {
      const what = cause instanceof Error ? cause.message : '';
      throw new CellarstreamError(
        'REGISTRY_REFUSED',
        `${about} in the schema registry was not registered by Cellarstream (${what}): ${advice}, or set another TOPIC_PREFIX`,
        { cause },
      );
    }
  }

  /**
   * Adds the fields of these records that the current schema lacks, and registers the extended schema. Does nothing if no field is missing.
   */
  async #addFieldsOf(records: readonly JsonObject[], keyFields: readonly string[]): Promise<void> {
    const { name: resource, namespace } = this.#options.list;
    const grown = (from: RecordSchema | undefined) =>
      growSchema(from, records, { resource, namespace, keyFields });
    const before = this.#current?.codec.values.schema;
    const after = grown(before);
    if (after === before) return;
    try {
      await this.#register(after);
    } catch (error) {
      // Another process may have registered the same field with another type: its version wins.
      if (!(error instanceof CellarstreamError) || error.code !== 'REGISTRY_REFUSED') throw error;
      const latest = await this.#readLatest();
      if (!latest || isDeepStrictEqual(latest, before)) throw error;
      await this.#register(grown(latest));
    }
  }

  async #encodeAll(
    records: readonly JsonObject[],
    values: EnvelopeCodec['values'],
    onUnknown?: () => void,
  ): Promise<readonly Buffer[]> {
    const images: Buffer[] = [];
    for (let from = 0; from < records.length; from += RECORDS_PER_TURN) {
      if (from > 0) await this.#options.pause?.();
      const slice = records.slice(from, from + RECORDS_PER_TURN);
      images.push(...slice.map((record) => values.encode(record, onUnknown)));
    }
    return images;
  }
}
