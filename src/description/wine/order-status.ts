// Types of the status changes of orders. Their fields and schema are those that wine.yaml names.

import { loadSchema } from '../../schemas/avro/avro-schema.ts';
import { createFlatCodec } from '../../schemas/events/own-records.ts';
import type { StatusChangeEvent } from '../../schemas/events/own-records.ts';

/** Kind of object that a status belongs to. */
export type StatusSubject = 'order' | 'order_edit' | 'fulfillment' | 'club_package';

/** Status fields whose changes are published, by the kind of object in an order that has them, such as the order itself or a fulfillment. */
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
export interface OrderStatusChange extends Omit<StatusChangeEvent, 'key'> {
  /** Number of the order; null only if it is not an integer that a double represents. */
  readonly order_number: number | null;
  readonly subject: StatusSubject;
  /** Identity of the part of the order whose status changed: `created_at` of an edit, `fulfillment_id` of a fulfilment, else null. */
  readonly subject_id: string | null;
}

/** Encodes and decodes status changes in Avro. */
export const orderStatusChangeCodec = createFlatCodec<OrderStatusChange>(
  loadSchema(new URL('./order-status-change.avsc', import.meta.url)),
);
