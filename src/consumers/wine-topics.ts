// The topics of the built-in API, with the types of their values.

import type { OrderStatusChange } from '../description/wine/order-status.ts';
import { orderStatusChangeCodec } from '../description/wine/order-status.ts';
import type { Order } from '../description/wine/order-type.ts';
import { orderSchema } from '../description/wine/order.ts';
import { topicNames } from '../description/wine/topic-names.ts';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import type { DeadLetter } from '../schemas/events/own-records.ts';
import { deadLetters, jsonEvents, readAs, readEventsAs } from './topic.ts';
import type { Topic, ValueReader } from './topic.ts';

const statusChanges = readAs<OrderStatusChange>(orderStatusChangeCodec.schema);

/**
 * Decodes change events of orders. Their images (`before` and `after`) are resolved to the schema of {@link Order}, whichever schema
 * version they were written with.
 */
export const orderEvents: ValueReader<ChangeEvent<Order>> = readEventsAs<Order>(
  orderSchema,
  'orders',
);

/** The topics of records, status changes and dead letters that `cellarstream run` writes for the built-in API. */
export interface Topics {
  readonly orders: Topic<ChangeEvent<Order>>;
  readonly customers: Topic<ChangeEvent>;
  readonly inventory: Topic<ChangeEvent>;
  readonly wineClubs: Topic<ChangeEvent>;
  readonly wineClubMembers: Topic<ChangeEvent>;
  readonly products: Topic<ChangeEvent>;
  readonly orderStatusChanges: Topic<OrderStatusChange>;
  readonly deadLetters: Topic<DeadLetter>;
}

/**
 * Returns the topics of the built-in API under a prefix, with the types of their values. The values of orders have typed fields; those of
 * other resources are JSON, because their fields are not documented.
 *
 * @param prefix `TOPIC_PREFIX` of the service. Default `wine`.
 */
export function topicsUnder(prefix = 'wine'): Topics {
  const names = topicNames(prefix);
  const json = (resource: string) => ({ name: names.records(resource), values: jsonEvents });
  return {
    orders: { name: names.records('orders'), values: orderEvents },
    customers: json('customers'),
    inventory: json('inventory'),
    wineClubs: json('wine-clubs'),
    wineClubMembers: json('wine-club-members'),
    products: json('products'),
    orderStatusChanges: { name: names.orderStatusChanges, values: statusChanges },
    deadLetters: { name: names.deadLetters, values: deadLetters },
  };
}
