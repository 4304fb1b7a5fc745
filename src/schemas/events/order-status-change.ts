import { createFlatCodec } from '../avro/flat-codec.ts';
import { loadSchema } from '../avro/load-schema.ts';

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
