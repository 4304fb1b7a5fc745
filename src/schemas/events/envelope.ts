// Change events in Avro, with Debezium's field names: their schema, their codec, and conversion back to the API's JSON.

import { createHash } from 'node:crypto';
import avro from 'avsc';
import { asBuffer, AvroOutput } from '../avro/avro-output.ts';
import { listNamespace } from '../avro/avro-name.ts';
import { isUnion, type FieldSchema, type RecordSchema } from '../avro/avro-schema.ts';
import { stringifyJson, type JsonObject } from '../json/json.ts';
import { RecordCodec } from '../avro/record-codec.ts';
import { NULL_BRANCH, VALUE_BRANCH } from '../avro/transcoder/layout.ts';
import { writeHeader } from '../registry/wire.ts';
import { boundedMap } from '../../core/bounded-map.ts';

/**
 * Operation of an event: `r` for a record that the initial snapshot read or that was published again, `c` for a created record, `u` for an
 * updated one, `d` for a deleted one.
 */
export type Op = 'r' | 'c' | 'u' | 'd';

/** Origin of a change event. */
export interface EventSource {
  readonly connector: string;
  readonly version: string;
  /** Name of the account. */
  readonly name: string;
  readonly resource: string;
  /** The record's modification time (`updated_at`) in ms since 1970; null if the record has none. */
  readonly ts_ms: number | null;
  readonly snapshot: 'true' | 'false';
  /** Sequence number of the event, higher than that of every earlier event of the same key. */
  readonly sequence: number;
  /** The account's topic prefix. Empty if the schema version of the event lacks the field `db`. */
  readonly db: string;
  /**
   * Name of the event's list, equal to `resource`, for transforms of Debezium and Iceberg, which read it under this name. Empty if the
   * schema version of the event lacks the field `table`.
   */
  readonly table: string;
}

/** The fields of a change event other than its images. */
export interface ChangeFacts {
  readonly op: Op;
  /** When the event was published, in epoch ms. */
  readonly ts_ms: number;
  /**
   * Paths of the fields that differ between `before` and `after`; empty unless `op` is `u`. An array element appears as its identity
   * (`lines[L-12].status`) or, if the array has no identity field, as its index (`lines[0].status`).
   */
  readonly changed: readonly string[];
  readonly source: EventSource;
}

/**
 * A change event. `Image` is the type of its images: Avro bytes when written, JSON when read. An example from the topic of a list
 * `tickets`, with the key `17`:
 *
 * ```json
 * {
 *   "before": { "id": 17, "status": "open", ... },
 *   "after": { "id": 17, "status": "solved", ... },
 *   "op": "u",
 *   "ts_ms": 1795232855578,
 *   "changed": ["status", "updated_at"],
 *   "source": { "connector": "cellarstream", ..., "resource": "tickets", "snapshot": "false", "sequence": 318 }
 * }
 * ```
 */
export interface ChangeEvent<Image = JsonObject> extends ChangeFacts {
  readonly before: Image | null;
  readonly after: Image | null;
}

/** The properties of a change event from which the image store is restored. */
export interface EventImages {
  /** The encoded record before the change. `before` and `after` are slices of the event's bytes: copy them to retain them. */
  readonly before: Buffer | null;
  readonly after: Buffer | null;
  readonly op: Op;
  readonly sequence: number;
}

/** Returns the Avro schema of a list's change events, with Debezium's field names. `valueSchema` is the schema of their images. */
export function envelopeSchema(
  valueSchema: RecordSchema,
  resource: string,
  namespace = listNamespace(resource),
): RecordSchema {
  const { name, namespace: own } = valueSchema;
  const fullName = own && !name.includes('.') ? `${own}.${name}` : name;
  return {
    type: 'record',
    name: 'Envelope',
    namespace,
    doc: `A change of one record of ${resource}.`,
    fields: [
      {
        name: 'before',
        type: ['null', valueSchema],
        default: null,
        doc: 'The record before the change; null when it was not known.',
      },
      {
        name: 'after',
        type: ['null', fullName],
        default: null,
        doc: 'The record after the change; null when it was deleted.',
      },
      ...FACTS,
    ],
  };
}

const FACTS: readonly FieldSchema[] = [
  {
    name: 'op',
    type: 'string',
    doc: 'r: read by the initial snapshot, or published again; c: created; u: updated; d: deleted.',
  },
  { name: 'ts_ms', type: 'long', doc: 'Published at, in ms since 1970.' },
  {
    name: 'changed',
    type: { type: 'array', items: 'string' },
    default: [],
    doc: 'The paths that differ, array elements by their identity: fulfillment_info[F-12].status.',
  },
  {
    name: 'source',
    type: {
      type: 'record',
      name: 'Source',
      namespace: 'cellarstream',
      doc: 'Where an event comes from.',
      fields: [
        { name: 'connector', type: 'string', doc: 'cellarstream.' },
        { name: 'version', type: 'string', doc: 'Its version.' },
        { name: 'name', type: 'string', doc: 'The account.' },
        { name: 'resource', type: 'string', doc: 'The resource: orders, wine-clubs, ...' },
        {
          name: 'ts_ms',
          type: ['null', 'long'],
          default: null,
          doc: "The record's updated_at in ms since 1970, or null.",
        },
        {
          name: 'snapshot',
          type: 'string',
          doc: 'true for events of the initial snapshot, else false.',
        },
        { name: 'sequence', type: 'long', doc: 'Rises with every event of one key.' },
        { name: 'db', type: 'string', default: '', doc: "The prefix of the account's topics." },
        { name: 'table', type: 'string', default: '', doc: 'The resource, as Debezium calls it.' },
      ],
    },
    doc: 'Where the event comes from.',
  },
];

/**
 * Creates the codec for events of a resource whose images have the schema `valueSchema`.
 *
 * @throws TypeError when `valueSchema` is not a schema of record images.
 */
export function createEnvelopeCodec(valueSchema: RecordSchema, resource: string): EnvelopeCodec {
  return envelopeCodec(envelopeSchema(valueSchema, resource));
}

/**
 * Creates the codec for any version of a resource's event schema, as registered.
 *
 * @throws TypeError when `schema` is not an event schema.
 */
export function envelopeCodec(schema: RecordSchema): EnvelopeCodec {
  return new EnvelopeCodec(schema);
}

/** Encodes and decodes the change events of one resource, for one schema of its images (the records before and after a change). */
export class EnvelopeCodec {
  /** Avro schema of the events, to be registered for the values of their topic. */
  readonly schema: RecordSchema;
  readonly values: RecordCodec;
  readonly #out = new AvroOutput();
  readonly #facts: avro.Type;
  /**
   * Avro type with which {@link EnvelopeCodec.images} decodes the fields after an event's images. It has only `op` and `source.sequence`,
   * because decoding all fields would create many unused strings.
   */
  readonly #brief: avro.Type;
  readonly #toBrief: object;
  /** A record type without fields. Resolving an image to this type skips the image and yields the offset of its end. */
  readonly #nothing: avro.Type;
  readonly #toNothing: object;

  /** @throws TypeError when `schema` is not an event schema. */
  constructor(schema: RecordSchema) {
    const valueSchema = valueSchemaOf(schema);
    const factsOf = (fields: readonly FieldSchema[]) =>
      avro.Type.forSchema({ type: 'record', name: 'Facts', fields } as avro.Schema);
    const fields = schema.fields.slice(2);
    this.schema = schema;
    this.values = new RecordCodec(valueSchema);
    this.#facts = factsOf(fields);
    this.#brief = factsOf(briefly(fields));
    this.#toBrief = this.#brief.createResolver(this.#facts);
    this.#nothing = avro.Type.forSchema({ ...valueSchema, fields: [] });
    this.#toNothing = this.#nothing.createResolver(this.values.type);
  }

  /** Encodes an event whose images were encoded with the codec {@link values}. */
  encode(event: ChangeEvent<Uint8Array>): Buffer {
    this.#out.length = 0; // discards the remains of a failed encoding
    return this.#write(event);
  }

  /** Encodes the value of a Kafka message: an event in the Confluent wire format. */
  message(schemaId: number, event: ChangeEvent<Uint8Array>): Buffer {
    this.#out.length = 0;
    writeHeader(this.#out, schemaId);
    return this.#write(event);
  }

  /** @throws Error when the bytes aren't an event. */
  decode(bytes: Uint8Array): ChangeEvent {
    const { before, after, rest } = this.#split(bytes);
    const { op, ts_ms, changed, source } = this.#facts.fromBuffer(rest) as ChangeFacts;
    return {
      before: before && this.values.decode(before),
      after: after && this.values.decode(after),
      op,
      ts_ms,
      changed,
      source: { ...{ db: '', table: '' }, ...source }, // older schemas lack these two fields
    };
  }

  /** Extracts the operation, the sequence number and the images of an event. The images (the record before and after) stay encoded. */
  images(bytes: Uint8Array): EventImages {
    const { before, after, rest } = this.#split(bytes);
    const { op, source } = this.#brief.fromBuffer(rest, this.#toBrief) as ChangeFacts;
    return { before, after, op, sequence: source.sequence };
  }

  /** Appends the event to what the output buffer already contains, and returns a copy of all these bytes. */
  #write({ before, after, op, ts_ms, changed, source }: ChangeEvent<Uint8Array>): Buffer {
    const out = this.#out;
    for (const image of [before, after]) {
      out.byte(image ? VALUE_BRANCH : NULL_BRANCH);
      // Copied unchanged: Avro encodes a record as the concatenation of its fields.
      if (image) out.raw(image);
    }
    // Paths contain names of members, which may have lone surrogates: U+FFFD replaces them.
    const paths = changed.map((path) => path.toWellFormed());
    out.value(this.#facts, { op, ts_ms, changed: paths, source });
    return out.take();
  }

  /** Splits an event into its encoded images and the bytes of its other fields. */
  #split(event: Uint8Array) {
    const bytes = asBuffer(event);
    const before = this.#imageAt(bytes, 0);
    const after = this.#imageAt(bytes, before.end);
    return { before: before.image, after: after.image, rest: bytes.subarray(after.end) };
  }

  /**
   * Reads the encoded image that begins, with its union branch, at byte `at` of an event; null if the branch is null. `end` is the byte at
   * which the event's next field begins.
   */
  #imageAt(bytes: Buffer, at: number): { image: Buffer | null; end: number } {
    if (bytes[at] === NULL_BRANCH) return { image: null, end: at + 1 };
    const isImage = bytes[at] === VALUE_BRANCH;
    const end = isImage ? this.#nothing.decode(bytes, at + 1, this.#toNothing).offset : -1;
    if (end < 0)
      throw new Error(
        `not an event of ${this.schema.name}: the bytes of the message from byte ${at} on can't be decoded as a record of this Avro schema`,
      );
    return { image: bytes.subarray(at + 1, end), end };
  }
}

/**
 * Returns the image schema within any version of an event schema that {@link envelopeSchema} made.
 *
 * @throws TypeError when the schema is not an event schema.
 */
export function valueSchemaOf({ fields, name }: RecordSchema): RecordSchema {
  const [before, after] = fields;
  const type = before?.name === 'before' && after?.name === 'after' ? before.type : undefined;
  const value = type !== undefined && isUnion(type) ? type[1] : undefined;
  if (typeof value === 'object' && 'fields' in value) return value;
  throw new TypeError(
    `${name} isn't a schema of change events: its first two fields must be "before" and "after", and "before" must be null or a record`,
  );
}

/**
 * Reduces the fields that follow the images in an event schema to those that {@link EventImages} needs: `op`, and `source` with `sequence`
 * alone.
 */
function briefly(facts: readonly FieldSchema[]): FieldSchema[] {
  return facts.flatMap((field) => {
    if (field.name === 'op') return [field];
    if (field.name !== 'source' || typeof field.type !== 'object' || !('fields' in field.type))
      return [];
    const sequence = field.type.fields.filter(({ name }) => name === 'sequence');
    return [{ ...field, type: { ...field.type, fields: sequence } }];
  });
}

/**
 * Maximum number of cached event codecs, one for each schema version of a list. If it is too small, codecs are compiled repeatedly. If it
 * is too large, they take memory.
 */
const MAX_REMEMBERED = 200;

/** Returns {@link envelopeCodec} with a cache: equal schemas share a codec. The lists of a fleet's accounts often have equal schemas. */
export function sharedCodecs(): (schema: RecordSchema) => EnvelopeCodec {
  const codecs = boundedMap<string, EnvelopeCodec>(MAX_REMEMBERED);
  return (schema) => {
    const name = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
    const known = codecs.get(name);
    if (known) return known;
    const codec = envelopeCodec(schema);
    codecs.set(name, codec);
    return codec;
  };
}

/** The images of an event: the record before and after the change. */
export type ImagesOf<Image> = Pick<ChangeEvent<Image>, 'before' | 'after'>;

/**
 * Returns the record in an event as JSON text with the content that the API sent. The record is `after`, or `before` if `after` is null.
 * Returns null if both images are null.
 *
 * Every number has its original value, even `-0`, `1e400` and 64-bit ids, but maybe another notation. Null members remain null, and absent
 * members remain absent. The order of the keys is unspecified.
 *
 * @param event An event as `EnvelopeCodec.decode` returns it, whose images are JSON.
 */
export function toJson(event: ImagesOf<JsonObject>): string | null;
/**
 * Returns the record in an event that was decoded with avsc, as JSON text with the content that the API sent. The record is `after`, or
 * `before` if `after` is null. Returns null if both images are null. The order of the keys is unspecified.
 *
 * @param event An event decoded by an avsc type that was made from `schema` with avsc's default options.
 * @param schema The schema of the event, parsed from the registry's text: avsc's own `type.schema()` lacks the fields' JSON names. The
 * schema is compiled at the first call, so pass the same object every time.
 * @throws TypeError when `schema` is not an event schema.
 */
export function toJson(event: ImagesOf<unknown>, schema: RecordSchema): string | null;
export function toJson({ before, after }: ImagesOf<unknown>, schema?: RecordSchema): string | null {
  const image = after ?? before;
  if (image === null) return null;
  return stringifyJson(schema ? imageCodec(schema).toJson(image) : (image as JsonObject));
}

/** Codecs of the images (records as published) by the schema of the events, for all callers of `toJson`. */
const imageCodecs = new WeakMap<RecordSchema, RecordCodec>();

function imageCodec(schema: RecordSchema): RecordCodec {
  let codec = imageCodecs.get(schema);
  if (!codec) imageCodecs.set(schema, (codec = new RecordCodec(valueSchemaOf(schema))));
  return codec;
}
