// Types of the status changes of orders. Their fields and schema are those that wine.yaml names.

import { loadSchema } from '../../schemas/avro/avro-schema.ts';
import { createFlatCodec } from '../../schemas/events/own-records.ts';

/** Kind of object that a status belongs to. */
export type StatusSubject = 'order' | 'order_edit' | 'fulfillment' | 'club_package';

/** Status fields of orders whose changes are published, by the kind of object that they belong to. */
export const STATUS_FIELDS = {
  order: ['payment_status', 'fulfillment_status'],
  order_edit: ['status'],
  fulfillment: ['status', 'shipment_status'],
  club_package: [
    'package_status',
    'customer_package_status',
    'wine_club_order_status',
    'compliance_status',
  ],
} as const satisfies Record<StatusSubject, readonly string[]>;

/** Name of a status field of an order, or of a part of an order. */
export type StatusField = (typeof STATUS_FIELDS)[StatusSubject][number];

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
