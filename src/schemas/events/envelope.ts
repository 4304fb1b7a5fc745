// Change events in Avro, by Debezium's field names: schema, codec, and the API's JSON from an event.

import { createHash } from 'node:crypto';
import avro from 'avsc';
import { asBuffer, AvroOutput } from '../avro/avro-output.ts';
import type { AvroType, FieldSchema, RecordSchema } from '../avro/avro-schema.ts';
import type { JsonObject } from '../json/json.ts';
import { createRecordCodec } from '../avro/record-codec.ts';
import type { RecordCodec } from '../avro/record-codec.ts';
import { writeHeader } from '../registry/wire.ts';
import { boundedMap } from '../../core/bounded-map.ts';
import { stringifyJson } from '../json/json.ts';

/** Initial snapshot or published again, created, updated, deleted. */
export type Op = 'r' | 'c' | 'u' | 'd';

/** Where an event comes from. */
export interface EventSource {
  readonly connector: string;
  readonly version: string;
  /** The account. */
  readonly name: string;
  readonly resource: string;
  /** The record's `updated_at` in ms since 1970, or null. */
  readonly ts_ms: number | null;
  readonly snapshot: 'true' | 'false';
  /** Rises with every event of one key. */
  readonly sequence: number;
  /** The account's topic prefix; empty in events of schemas without the field. */
  readonly db: string;
  /** The same as `resource`, under the name that Debezium's and Iceberg's transforms read; empty likewise. */
  readonly table: string;
}

/** What is said of a change beside its images. */
export interface ChangeFacts {
  readonly op: Op;
  /** Published at, in ms since 1970. */
  readonly ts_ms: number;
  /** The paths that differ. */
  readonly changed: readonly string[];
  readonly source: EventSource;
}

/**
 * A change, its images as `Image`: Avro bytes to write, JSON when read. In the topic of orders, under the key `100234`:
 *
 * ```json
 * {
 *   "before": { "order_number": 100234, "payment_status": "authorized", ... },
 *   "after": { "order_number": 100234, "payment_status": "paid", ... },
 *   "op": "u",
 *   "ts_ms": 1795232855578,
 *   "changed": ["payment_status", "updated_at"],
 *   "source": { "connector": "cellarstream", ..., "resource": "orders", "snapshot": "false", "sequence": 318 }
 * }
 * ```
 */
export interface ChangeEvent<Image = JsonObject> extends ChangeFacts {
  readonly before: Image | null;
  readonly after: Image | null;
}

/** What it takes to rebuild the store of images from a topic. */
export interface EventImages {
  /** Slices of the event's bytes: copy them to keep them. */
  readonly before: Buffer | null;
  readonly after: Buffer | null;
  readonly op: Op;
  readonly sequence: number;
}

/** Events of one resource to Avro and back, for one schema of its images. */
export interface EnvelopeCodec {
  /** The schema to register. */
  readonly schema: RecordSchema;
  /** Its images. */
  readonly values: RecordCodec;
  /** An event whose images were encoded with the same schema of values. */
  encode(event: ChangeEvent<Uint8Array>): Buffer;
  /** The same as the value of a message, framed for the registry: see {@link frame}. */
  message(schemaId: number, event: ChangeEvent<Uint8Array>): Buffer;
  /** @throws Error when the bytes aren't an event. */
  decode(bytes: Uint8Array): ChangeEvent;
  /** The images as they were encoded, without decoding them. */
  images(bytes: Uint8Array): EventImages;
}

/** The schema of a resource's events, by Debezium's field names. Hyphens become underscores. */
export function envelopeSchema(valueSchema: RecordSchema, resource: string): RecordSchema {
  const { name, namespace } = valueSchema;
  const fullName = namespace && !name.includes('.') ? `${namespace}.${name}` : name;
  return {
    type: 'record',
    name: 'Envelope',
    namespace: `cellarstream.${resource.replaceAll('-', '_')}`,
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

/** @throws TypeError when `valueSchema` isn't one of record images. */
export function createEnvelopeCodec(valueSchema: RecordSchema, resource: string): EnvelopeCodec {
  return envelopeCodec(envelopeSchema(valueSchema, resource));
}

/**
 * The codec for the schema of a resource's events, of whatever version: as it comes from a registry.
 *
 * @throws TypeError when it's another schema.
 */
export function envelopeCodec(schema: RecordSchema): EnvelopeCodec {
  const valueSchema = valueSchemaOf(schema);
  const values = createRecordCodec(valueSchema);
  const fields = schema.fields.slice(2);
  const facts = avro.Type.forSchema({ type: 'record', name: 'Facts', fields } as avro.Schema);
  const out = new AvroOutput();

  // A reader that wants none of the fields skips over the value: that finds where it ends.
  const nothing = avro.Type.forSchema({ ...valueSchema, fields: [] });
  const skipping = nothing.createResolver(values.type);
  // What is kept beside an image: the rest is as many texts to make of bytes for nobody.
  const brief = avro.Type.forSchema({
    type: 'record',
    name: 'Facts',
    fields: briefly(fields),
  } as avro.Schema);
  const inBrief = brief.createResolver(facts);

  /** The image at `at` (its branch of the union first), and where the next field starts. */
  const imageAt = (bytes: Buffer, at: number): { image: Buffer | null; end: number } => {
    if (bytes[at] === NULL_BRANCH) return { image: null, end: at + 1 };
    const end = bytes[at] === VALUE_BRANCH ? nothing.decode(bytes, at + 1, skipping).offset : -1;
    if (end < 0) throw new Error(`not an event of ${schema.name}: no image at byte ${at}`);
    return { image: bytes.subarray(at + 1, end), end };
  };

  const parts = (event: Uint8Array) => {
    const bytes = asBuffer(event);
    const before = imageAt(bytes, 0);
    const after = imageAt(bytes, before.end);
    return { before: before.image, after: after.image, rest: bytes.subarray(after.end) };
  };

  // Avro writes a record as its fields one after the other, so images need no second encoding.
  const write = (event: ChangeEvent<Uint8Array>): void => {
    writeImage(out, event.before);
    writeImage(out, event.after);
    writeFacts(out, event);
  };

  return {
    schema,
    values,
    encode: (event) => {
      out.length = 0; // what an error has left
      write(event);
      return out.take();
    },
    message: (schemaId, event) => {
      out.length = 0;
      writeHeader(out, schemaId);
      write(event);
      return out.take();
    },
    decode: (bytes) => {
      const { before, after, rest } = parts(bytes);
      const { op, ts_ms, changed, source } = facts.fromBuffer(rest) as ChangeFacts;
      return {
        before: before && values.decode(before),
        after: after && values.decode(after),
        op,
        ts_ms,
        changed,
        source: { ...NO_TABLE, ...source },
      };
    },
    images: (bytes) => {
      const { before, after, rest } = parts(bytes);
      const { op, source } = brief.fromBuffer(rest, inBrief) as BriefFacts;
      return { before, after, op, sequence: source.sequence };
    },
  };
}

/**
 * The schema of the images in a schema that {@link envelopeSchema} made, of whatever version.
 *
 * @throws TypeError when it's another schema.
 */
export function valueSchemaOf({ fields, name }: RecordSchema): RecordSchema {
  const [before, after] = fields;
  const type = before?.name === 'before' && after?.name === 'after' ? before.type : undefined;
  const value = Array.isArray(type) ? (type as AvroType[])[1] : undefined;
  if (typeof value === 'object' && 'fields' in value) return value;
  throw new TypeError(`${name} isn't an envelope: it doesn't begin with before and after`);
}

/** Of the facts, those that are read in brief. */
interface BriefFacts extends Pick<ChangeFacts, 'op'> {
  readonly source: Pick<EventSource, 'sequence'>;
}

/** {@link FACTS}, or those of another version, with nothing but {@link BriefFacts}. */
function briefly(facts: readonly FieldSchema[]): FieldSchema[] {
  return facts.flatMap((field) => {
    if (field.name === 'op') return [field];
    if (field.name !== 'source' || typeof field.type !== 'object' || !('fields' in field.type))
      return [];
    const sequence = field.type.fields.filter(({ name }) => name === 'sequence');
    return [{ ...field, type: { ...field.type, fields: sequence } }];
  });
}

/** Values of the fields that older schemas lack. */
const NO_TABLE = { db: '', table: '' };

/** Branches 0 and 1 of `["null", Value]`, as Avro writes their index. */
const NULL_BRANCH = 0;
const VALUE_BRANCH = 2;

function writeImage(out: AvroOutput, image: Uint8Array | null): void {
  out.byte(image ? VALUE_BRANCH : NULL_BRANCH);
  if (image) out.raw(image);
}

/** {@link FACTS}, in their order. */
function writeFacts(out: AvroOutput, { op, ts_ms, changed, source }: ChangeFacts): void {
  text(out, op);
  out.long(ts_ms);
  out.block(changed, (path) => text(out, path));
  text(out, source.connector);
  text(out, source.version);
  text(out, source.name);
  text(out, source.resource);
  out.byte(source.ts_ms === null ? NULL_BRANCH : VALUE_BRANCH);
  if (source.ts_ms !== null) out.long(source.ts_ms);
  text(out, source.snapshot);
  out.long(source.sequence);
  text(out, source.db);
  text(out, source.table);
}

/** A path may hold half a surrogate pair, from a name in the record. */
function text(out: AvroOutput, value: string): void {
  if (!out.string(value)) out.string(value.toWellFormed());
}

/** Schemas whose codecs are remembered, at least the newest half: of six resources, some versions each. */
const MAX_REMEMBERED = 200;

/**
 * {@link envelopeCodec}, but of equal schemas the same codec for all: accounts of a fleet have the same lists. A codec ends
 * each call with nothing under way, so many may share it.
 */
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
