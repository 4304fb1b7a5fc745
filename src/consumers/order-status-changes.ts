// Replays the topic of order status changes, filtered by field values.

import { EMPTY, filter } from 'rxjs';
import type { Observable, ObservableInput } from 'rxjs';
import type { OrderStatusChange } from '../description/wine/order-status.ts';
import type { Consumed } from './consumed.ts';
import { replay } from './replay.ts';
import type { ReplayOptions } from './replay.ts';
import { topicsUnder } from './wine-topics.ts';

/** A single accepted value, or a list of accepted values. */
export type OneOf<T> = T | readonly T[];

/** Accepted values of a status change's fields. A status change matches if every field that is set here has an accepted value. */
export type StatusChangeFilter = {
  readonly [Field in 'subject' | 'subject_id' | 'field' | 'from' | 'to' | 'order_number']?: OneOf<
    OrderStatusChange[Field]
  >;
};

/** Options of {@link orderStatusChanges}: the source, the range to read, and a filter. */
export interface OrderStatusChangesOptions extends Omit<
  ReplayOptions<OrderStatusChange>,
  'topic' | 'key'
> {
  /** `TOPIC_PREFIX` of the service. Default `wine`. */
  readonly prefix?: string;
  /** Selects the status changes to emit, such as `{ field: 'shipment_status', to: ['Shipped', 'Delivered'] }`. Default: all. */
  readonly where?: StatusChangeFilter;
}

/**
 * Emits the order status changes that match `where`, in the range from `from` to `to` as in {@link replay}: by default all that exist at
 * the time of the subscription.
 *
 * In a status change, `from` is null if there was no status before, `to` is null if the status was removed.
 *
 * @example
 * ```ts
 * import { orderStatusChanges } from 'cellarstream/consume';
 * import { createRegistry } from 'cellarstream/schemas';
 * import { Kafka } from 'kafkajs';
 *
 * const kafka = new Kafka({ brokers: ['127.0.0.1:9092'] });
 * const registry = createRegistry({ url: 'http://127.0.0.1:8081/apis/ccompat/v7' });
 * orderStatusChanges({
 *   kafka,
 *   registry,
 *   from: 'latest',
 *   to: 'never',
 *   where: { field: 'payment_status', to: 'paid' },
 * }).subscribe(({ key }) => console.log(`order ${key} is paid`));
 * ```
 */
export function orderStatusChanges(
  options: OrderStatusChangesOptions,
): Observable<Consumed<OrderStatusChange>>;
/**
 * Passes each status change that matches `options.where` to `handle`, one at a time, and emits the values of the promises or Observables
 * that `handle` returns.
 */
export function orderStatusChanges<R>(
  options: OrderStatusChangesOptions,
  handle: (change: Consumed<OrderStatusChange>) => ObservableInput<R>,
): Observable<R>;
export function orderStatusChanges(
  options: OrderStatusChangesOptions,
  handle?: (change: Consumed<OrderStatusChange>) => ObservableInput<unknown>,
): Observable<unknown> {
  const { prefix, where = {}, ...others } = options;
  const matches = matchesStatusChange(where);
  const isWanted = ({ value }: Consumed<OrderStatusChange>) => value !== null && matches(value);
  const changes = { ...others, topic: topicsUnder(prefix).orderStatusChanges };
  return handle
    ? replay(changes, (change) => (isWanted(change) ? handle(change) : EMPTY))
    : replay(changes).pipe(filter(isWanted));
}

function matchesStatusChange(where: StatusChangeFilter): (change: OrderStatusChange) => boolean {
  const wanted = Object.entries(where).map(([name, values]) => {
    const set = new Set<unknown>(Array.isArray(values) ? values : [values]);
    return (change: OrderStatusChange) => set.has(change[name as keyof StatusChangeFilter]);
  });
  return (change) => wanted.every((matches) => matches(change));
}
