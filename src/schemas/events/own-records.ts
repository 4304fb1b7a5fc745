// Messages of the service that are not change events: status changes, and dead letters.

import { isDeepStrictEqual } from 'node:util';
import avro from 'avsc';
import { loadSchema, type FieldSchema, type RecordSchema } from '../avro/avro-schema.ts';
import { asBuffer } from '../avro/avro-output.ts';

/** A change of one status: of the record itself or of an object within it. */
export interface StatusChangeEvent {
  /** Identifier of the status change. A status change that is published again has the same identifier. */
  readonly event_id: string;
  /** Key of the record. */
  readonly key: string;
  /** Kind of the object that has the status, by its name in the description of the API. */
  readonly subject: string;
  /**
   * Identity, within its array, of the object that has the status. Null if the status is that of the record itself, or of an object that is
   * not in an array.
   */
  readonly subject_id: string | null;
  /** Name of the changed status field: `status`, or `status.name` for the field `name` of an object `status`. */
  readonly field: string;
  /** Previous status; null if there was none. */
  readonly from: string | null;
  /** New status; null if the object was removed, or if its status field is no longer set. */
  readonly to: string | null;
  /** When the status changed, in epoch ms by the API's clock; null if unknown. */
  readonly changed_at: number | null;
  /** When the service observed the change, in epoch ms. */
  readonly observed_at: number;
}

/** Schema of {@link StatusChangeEvent}, without a namespace. */
const STATUS_CHANGE = loadSchema(new URL('./status-change.avsc', import.meta.url));

/** Returns the Avro schema of {@link StatusChangeEvent} in a namespace. */
export function statusChangeSchema(namespace: string): RecordSchema {
  return { ...STATUS_CHANGE, namespace };
}

export function statusChangeType({ name }: RecordSchema): string {
  return `cellarstream.${name}`;
}

/**
 * Names of the fields of {@link StatusChangeEvent}. A description's own schema of status changes must have all of these fields; only `key`
 * is optional.
 */
export const STATUS_CHANGE_FIELDS: readonly string[] = STATUS_CHANGE.fields.map(({ name }) => name);

/**
 * Whether a schema has the fields that every schema of status changes must have: those of {@link StatusChangeEvent} except `key`. Types are
 * not checked.
 */
export function isStatusChangeSchema({ fields }: RecordSchema): boolean {
  const names = new Set(fields.map(({ name }) => name));
  return STATUS_CHANGE_FIELDS.every((name) => name === 'key' || names.has(name));
}

/**
 * Returns the names of the fields that make a schema unfit for status changes:
 *
 * - fields of {@link StatusChangeEvent} that the schema lacks, other than `key`;
 * - fields of {@link StatusChangeEvent} that have another type in the schema;
 * - fields of the schema that {@link StatusChangeEvent} does not have, other than key fields of the type `["null", "long"]`.
 */
export function wrongStatusFields(
  { fields }: RecordSchema,
  keyFields: readonly string[],
): readonly string[] {
  const types = new Map(fields.map(({ name, type }) => [name, type]));
  const isWrong = ({ name, type }: FieldSchema) =>
    types.has(name) ? !isDeepStrictEqual(types.get(name), type) : name !== 'key';
  const isUnknown = ({ name, type }: FieldSchema) =>
    !STATUS_CHANGE_FIELDS.includes(name) &&
    !(keyFields.includes(name) && isDeepStrictEqual(type, ['null', 'long']));
  const wrong = [...STATUS_CHANGE.fields.filter(isWrong), ...fields.filter(isUnknown)];
  return wrong.map(({ name }) => name);
}

export interface StatusChangeCodec extends FlatCodec<StatusChangeEvent> {
  /** Names of the schema's fields that contain the record's key: all fields that are not in {@link StatusChangeEvent}. */
  readonly keyFields: readonly string[];
}

const statusChangeCodecs = new WeakMap<RecordSchema, StatusChangeCodec>();

/** Returns the codec of status changes with this schema. The codec of a schema object is created once. */
export function statusChangeCodec(schema: RecordSchema): StatusChangeCodec {
  let codec = statusChangeCodecs.get(schema);
  if (!codec) {
    const names = schema.fields.map(({ name }) => name);
    const keyFields = names.filter((name) => !STATUS_CHANGE_FIELDS.includes(name));
    statusChangeCodecs.set(schema, (codec = { ...createFlatCodec(schema), keyFields }));
  }
  return codec;
}

/** A record that the API sent and that can't be published as it is, with the reason. */
export interface DeadLetter {
  readonly resource: string;
  /** Code of the reason why the record can't be published, stable across releases. */
  readonly reason: string;
  /** Why the record can't be published, in words. */
  readonly message: string;
  /**
   * JSON text of the record, or the part of this text with the number `part`. If `reason` is `unreadable`: the text that the API sent, or a
   * description instead if that text is hidden or unknown.
   */
  readonly raw: string;
  /**
   * List offset of the page that contained the record; 0 if the record came on no page. If `reason` is `unreadable`: the record's own list
   * offset. The service does not write null.
   */
  readonly offset: number | null;
  /** When the service received the record, in epoch ms. */
  readonly observed_at: number;
  /** SHA-256 of the record's complete JSON text in UTF-8, in hex; null if the text is not divided among several dead letters. */
  readonly sha256: string | null;
  /** Size of the record's complete JSON text in UTF-8, in bytes; null if the text is not divided among several dead letters. */
  readonly length: number | null;
  /**
   * Number of the part of the record's JSON text that this dead letter contains, from 1. Null if the dead letter contains the whole text.
   */
  readonly part: number | null;
  readonly parts: number | null;
}

/** Encodes and decodes dead letters in Avro. */
export const deadLetterCodec = createFlatCodec<DeadLetter>(
  loadSchema(new URL('./dead-letter.avsc', import.meta.url)),
);

/** Codec of messages with one Avro schema whose fields contain no Avro records. Times are in epoch ms. */
export interface FlatCodec<T> {
  /** Avro schema of the messages, to be registered for the values of their topic. */
  readonly schema: RecordSchema;
  /** @throws Error when the value doesn't match the schema. */
  encode(value: T): Buffer;
  /** @throws Error when the bytes aren't a value of the schema. */
  decode(bytes: Uint8Array): T;
}

export function createFlatCodec<T extends object>(schema: RecordSchema): FlatCodec<T> {
  const type = avro.Type.forSchema(schema as avro.Schema, { omitRecordMethods: true });
  return {
    schema,
    encode: (value) => type.toBuffer(value),
    decode: (bytes) => ({ ...(type.fromBuffer(asBuffer(bytes)) as T) }),
  };
}
