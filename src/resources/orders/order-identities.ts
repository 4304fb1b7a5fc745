import type { Identities } from '../../streams/diff/changed-paths.ts';

/** The arrays of an order whose elements are known by more than their place. */
export const ORDER_IDENTITIES: Identities = {
  fulfillment_info: 'fulfillment_id',
  order_edit: 'created_at',
};
