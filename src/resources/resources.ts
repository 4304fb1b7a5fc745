import type { RecordSchema } from '../schemas/avro/avro-schema.ts';
import { orderSchema } from './orders/order.ts';
import type { Identities } from '../streams/diff/changed-paths.ts';
import { ORDER_IDENTITIES } from './orders/order-identities.ts';
import { STATUS_FIELDS } from './orders/order-status.ts';

/** The six lists of the API, by the last segment of their addresses. */
export const RESOURCES = [
  'orders',
  'customers',
  'inventory',
  'wine-clubs',
  'wine-club-members',
  'products',
] as const;
/** A list of the API, by its name there. */
export type Resource = (typeof RESOURCES)[number];

/** What is known of a list before it is read. */
export interface ResourceRules {
  readonly resource: Resource;
  /** Behind the base address, the version included. */
  readonly path: string;
  /**
   * Whether it takes `modifiedFromDate` and `modifiedToDate`: then windows of them are polled. One
   * that does not is read whole, again and again.
   */
  readonly windowed: boolean;
  /**
   * What its key may be made of: each one field, or several together. The first that every record of
   * the first page has, with a value of its own, becomes the key. A single one is not put to the test.
   */
  readonly keyCandidates: readonly (readonly string[])[];
  /** The parameter that asks for one record by its key, a whole number, where there is one. */
  readonly byKey?: 'orderNumber';
  /** The fields whose changes are events of their own, by what they are of. */
  readonly statusFields?: typeof STATUS_FIELDS;
  /** What tells the elements of its arrays apart. */
  readonly identities?: Identities;
  /** The image of a record whose fields are documented; others are inferred. */
  readonly described?: RecordSchema;
}

/** Of all six. What the API's description leaves open is found out from what arrives. */
export const RULES: Readonly<Record<Resource, ResourceRules>> = {
  orders: {
    resource: 'orders',
    path: '/v1/orders',
    windowed: true,
    keyCandidates: [['order_number']],
    byKey: 'orderNumber',
    statusFields: STATUS_FIELDS,
    identities: ORDER_IDENTITIES,
    described: orderSchema,
  },
  customers: {
    resource: 'customers',
    path: '/v1/customers',
    windowed: true,
    keyCandidates: [['id'], ['customer_id'], ['customer_number'], ['uuid']],
  },
  inventory: {
    resource: 'inventory',
    path: '/v1/inventory',
    windowed: false,
    keyCandidates: [
      ['id'],
      ['inventory_id'],
      ['inventory_item_id'],
      // The finer first: the first page may be all of one location.
      ['sku', 'location_id'],
      ['sku', 'warehouse_id'],
      ['variant_id', 'location_id'],
      ['sku'],
      ['sku', 'location'],
    ],
  },
  'wine-clubs': {
    resource: 'wine-clubs',
    path: '/v1/wine-clubs',
    windowed: false,
    keyCandidates: [['id'], ['wine_club_id'], ['club_id'], ['uuid']],
  },
  'wine-club-members': {
    resource: 'wine-club-members',
    path: '/v1/wine-club-members',
    windowed: false,
    keyCandidates: [
      ['id'],
      ['wine_club_member_id'],
      ['member_id'],
      ['membership_id'],
      ['uuid'],
      ['wine_club_id', 'customer_id'],
    ],
  },
  products: {
    resource: 'products',
    path: '/v1/products',
    windowed: true,
    keyCandidates: [['id'], ['product_id'], ['product_number'], ['uuid'], ['sku'], ['handle']],
  },
};
