// The API's six lists and what is known about each: path, date parameters, keys, status fields.

import type { RecordSchema } from '../schemas/avro/avro-schema.ts';
import { orderSchema } from './orders/order.ts';
import type { Identities } from '../streams/diff/changed-paths.ts';
import { ORDER_IDENTITIES, STATUS_FIELDS } from './orders/order-status.ts';

/** Names of the API's six lists, as in their URLs. */
export const RESOURCES = [
  'orders',
  'customers',
  'inventory',
  'wine-clubs',
  'wine-club-members',
  'products',
] as const;
/** Name of a list. */
export type Resource = (typeof RESOURCES)[number];

/** Properties of a list of the API that are known before the list is read. */
export interface ResourceRules {
  readonly resource: Resource;
  /** Path of the list after the base URL, including the version. */
  readonly path: string;
  /**
   * Whether the list accepts `modifiedFromDate` and `modifiedToDate`, so that it can be polled in windows; other lists are read by full
   * scans alone.
   */
  readonly windowed: boolean;
  /**
   * Candidates for the key, each of one or several fields. The first one that every record of the first page has, with distinct values,
   * becomes the key. A sole candidate is used without this check.
   */
  readonly keyCandidates: readonly (readonly string[])[];
  /** Query parameter to request a single record by its key, an integer; absent if there is none. */
  readonly byKey?: 'orderNumber';
  /** Status fields whose changes are published as separate events, by the kind of object that they belong to. */
  readonly statusFields?: typeof STATUS_FIELDS;
  /** For arrays in the list's records: the field that identifies an element. */
  readonly identities?: Identities;
  /** Avro schema of the list's records, if the API documents their fields; otherwise the schema is inferred from the records. */
  readonly described?: RecordSchema;
}

/** Properties of all lists. What the API's description leaves open is determined from the responses. */
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
      // More specific candidates first: the first page may contain a single location.
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
