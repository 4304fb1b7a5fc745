// Records of our own: status changes of orders, and dead letters; as plain as their schemas.

import avro from 'avsc';
import { loadSchema } from '../avro/avro-schema.ts';
import { asBuffer } from '../avro/avro-output.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';

/** What a status can be of. */
export type StatusSubject = 'order' | 'order_edit' | 'fulfillment' | 'club_package';

/** One status of an order, or of a part of it, that changed. */
export interface OrderStatusChange {
  /** The same when it is published again. */
  readonly event_id: string;
  /** Null only where the order's number is no integer that a double holds. */
  readonly order_number: number | null;
  readonly subject: StatusSubject;
  /** `created_at` of an edit, `fulfillment_id` of a fulfilment, else null. */
  readonly subject_id: string | null;
  /** The plain name within the subject: `payment_status`, `status`, ... */
  readonly field: string;
  /** Null when there was none. */
  readonly from: string | null;
  /** Null when it vanished. */
  readonly to: string | null;
  /** The API's time of it in ms since 1970, or null. */
  readonly changed_at: number | null;
  /** In ms since 1970. */
  readonly observed_at: number;
}

/** Status changes to Avro and back. */
export const orderStatusChangeCodec = createFlatCodec<OrderStatusChange>(
  loadSchema(new URL('./order-status-change.avsc', import.meta.url)),
);

/** What the API sent and no topic can hold. */
export interface DeadLetter {
  readonly resource: string;
  /** A code that stays the same from release to release. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
  /** JSON text as the API sent it; of a numbered part, its share of that text. */
  readonly raw: string;
  /** Offset of the page it came on, or null. */
  readonly offset: number | null;
  /** In ms since 1970. */
  readonly observed_at: number;
  /** Of the whole text in UTF-8, in hex; null unless it comes in parts, as the rest of these. */
  readonly sha256: string | null;
  /** Bytes of the whole text in UTF-8. */
  readonly length: number | null;
  /** From 1. */
  readonly part: number | null;
  readonly parts: number | null;
}

/** Dead letters to Avro and back. */
export const deadLetterCodec = createFlatCodec<DeadLetter>(
  loadSchema(new URL('./dead-letter.avsc', import.meta.url)),
);

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
function createFlatCodec<T extends object>(schema: RecordSchema): FlatCodec<T> {
  const type = avro.Type.forSchema(schema as avro.Schema, { omitRecordMethods: true });
  return {
    schema,
    encode: (value) => type.toBuffer(value),
    decode: (bytes) => ({ ...(type.fromBuffer(asBuffer(bytes)) as T) }),
  };
}
