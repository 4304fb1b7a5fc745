// Messages with fixed schemas of this project: status changes of orders, and dead letters.

import avro from 'avsc';
import { loadSchema, type RecordSchema } from '../avro/avro-schema.ts';
import { asBuffer } from '../avro/avro-output.ts';

/** Kind of object that a status belongs to. */
export type StatusSubject = 'order' | 'order_edit' | 'fulfillment' | 'club_package';

/** A change of one status of an order, or of a part of an order. */
export interface OrderStatusChange {
  /** Identifier of the status change. A status change that is published again has the same identifier. */
  readonly event_id: string;
  /** Number of the order; null only if it is not an integer that a double represents. */
  readonly order_number: number | null;
  readonly subject: StatusSubject;
  /** Identity of the part of the order whose status changed: `created_at` of an edit, `fulfillment_id` of a fulfilment, else null. */
  readonly subject_id: string | null;
  /** Name of the status field that changed: `payment_status`, `status`, ... */
  readonly field: string;
  /** Previous status; null if there was none. */
  readonly from: string | null;
  /** New status; null if it was removed. */
  readonly to: string | null;
  /** When the status changed, in epoch ms by the API's clock; null if unknown. */
  readonly changed_at: number | null;
  /** When the service observed the change, in epoch ms. */
  readonly observed_at: number;
}

/** Encodes and decodes status changes in Avro. */
export const orderStatusChangeCodec = createFlatCodec<OrderStatusChange>(
  loadSchema(new URL('./order-status-change.avsc', import.meta.url)),
);

/** A record that the API sent and that can't be published as it is, with the reason. */
export interface DeadLetter {
  readonly resource: string;
  /** Code of the reason why the record can't be published, stable across releases. */
  readonly reason: string;
  /** Why the record can't be published, in words. */
  readonly message: string;
  /** The record's JSON text as the API sent it. If the text is divided among several dead letters: the part in this one. */
  readonly raw: string;
  /** List offset of the page that contained the record, or null. */
  readonly offset: number | null;
  /** When the service received the record, in epoch ms. */
  readonly observed_at: number;
  /** SHA-256 of the record's complete JSON text in UTF-8, in hex; null if the text is not divided among several dead letters. */
  readonly sha256: string | null;
  /** Size of the record's complete JSON text in UTF-8, in bytes; null if the text is not divided among several dead letters. */
  readonly length: number | null;
  /** Number of this part of the record's JSON text, from 1; null if the text is not divided among several dead letters. */
  readonly part: number | null;
  readonly parts: number | null;
}

/** Encodes and decodes dead letters in Avro. */
export const deadLetterCodec = createFlatCodec<DeadLetter>(
  loadSchema(new URL('./dead-letter.avsc', import.meta.url)),
);

/** Codec of messages with one fixed Avro schema, in which no field contains records; times are in epoch ms. */
export interface FlatCodec<T> {
  /** Avro schema of the messages, to be registered for the values of their topic. */
  readonly schema: RecordSchema;
  /** @throws Error when the value doesn't match the schema. */
  encode(value: T): Buffer;
  /** @throws Error when the bytes aren't a value of the schema. */
  decode(bytes: Uint8Array): T;
}

function createFlatCodec<T extends object>(schema: RecordSchema): FlatCodec<T> {
  const type = avro.Type.forSchema(schema as avro.Schema, { omitRecordMethods: true });
  return {
    schema,
    encode: (value) => type.toBuffer(value),
    decode: (bytes) => ({ ...(type.fromBuffer(asBuffer(bytes)) as T) }),
  };
}
