import type { Identities } from '../../streams/diff/changed-paths.ts';

/** Arrays of an order whose elements are matched by an identity field instead of by index; the values are the names of these fields. */
export const ORDER_IDENTITIES: Identities = {
  fulfillment_info: 'fulfillment_id',
  order_edit: 'created_at',
};
