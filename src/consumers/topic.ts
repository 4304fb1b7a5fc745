import { deadLetterCodec } from '../schemas/events/dead-letter.ts';
import type { DeadLetter } from '../schemas/events/dead-letter.ts';
import { envelopeCodec } from '../schemas/events/envelope.ts';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import { orderSchema } from '../resources/orders/order.ts';
import type { Order } from '../resources/orders/order-type.ts';
import { orderStatusChangeCodec } from '../schemas/events/order-status-change.ts';
import type { OrderStatusChange } from '../schemas/events/order-status-change.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { fullName, readAs, readEventsAs, type ValueReader } from './read-as.ts';

/** A topic by its name, and what its values are read as. */
export interface Topic<T> {
  readonly name: string;
  readonly values: ValueReader<T>;
}

/**
 * Events of any resource, their images as the API's JSON, rebuilt without loss: what {@link toJson}
 * prints. Follows the schema that wrote each event, so fields that are new show up by themselves.
 */
export const jsonEvents: ValueReader<ChangeEvent> = (writer) => {
  const codec = envelopeCodec(writer);
  return (avro) => codec.decode(avro);
};

const statusChanges = readAs<OrderStatusChange>(orderStatusChangeCodec.schema);
const deadLetters = readAs<DeadLetter>(deadLetterCodec.schema);

/** Events of orders, resolved to the schema of {@link Order}, whichever schema wrote them. */
export const orderEvents: ValueReader<ChangeEvent<Order>> = readEventsAs<Order>(
  orderSchema,
  'orders',
);

/** The topics that `cellarstream run` writes for consumers. */
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
 * The topics under a prefix, with the types of their values. Orders are typed by their documented
 * fields; the other resources are JSON, as nobody has documented them.
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

/** What a topic of the service holds, by its name alone: events as JSON, unless it's one of our own records. */
export type ValueIn<Name extends string> = Name extends `${string}.order-status-changes`
  ? OrderStatusChange
  : Name extends `${string}.dead-letters`
    ? DeadLetter
    : ChangeEvent;

/** A topic by its name alone: what its values are is told by the schemas that wrote them. */
export function topicNamed<Name extends string>(name: Name): Topic<ValueIn<Name>> {
  return { name, values: ownOrEvents as ValueReader<ValueIn<Name>> };
}

const OWN = new Map<string, ValueReader<OrderStatusChange | DeadLetter>>([
  [fullName(orderStatusChangeCodec.schema), statusChanges],
  [fullName(deadLetterCodec.schema), deadLetters],
]);
const ownOrEvents: ValueReader<OrderStatusChange | DeadLetter | ChangeEvent> = (writer) =>
  (OWN.get(fullName(writer)) ?? jsonEvents)(writer);

/** The topic, which may have been given by its name. */
export function topicOf<T>(topic: Topic<T> | string): Topic<T> {
  return typeof topic === 'string' ? (topicNamed(topic) as Topic<unknown> as Topic<T>) : topic;
}
