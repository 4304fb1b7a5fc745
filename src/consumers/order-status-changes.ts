// Replay of the topic of status changes, filtered.

import { EMPTY, filter } from 'rxjs';
import type { Observable, ObservableInput } from 'rxjs';
import type { OrderStatusChange } from '../schemas/events/own-records.ts';
import type { Consumed } from './consumed.ts';
import { replay } from './replay.ts';
import type { ReplayOptions } from './replay.ts';
import { topicsUnder } from './topic.ts';

/** One value, or any of several. */
export type OneOf<T> = T | readonly T[];

/** What a status change has to be; what is left out may be anything. */
export type StatusChangeFilter = {
  readonly [Field in 'subject' | 'subject_id' | 'field' | 'from' | 'to' | 'order_number']?: OneOf<
    OrderStatusChange[Field]
  >;
};

/** What {@link orderStatusChanges} needs: where to read, from where on, and which. */
export interface OrderStatusChangesOptions extends Omit<
  ReplayOptions<OrderStatusChange>,
  'topic' | 'key'
> {
  /** `TOPIC_PREFIX` of the service. Default `wine`. */
  readonly prefix?: string;
  /** Only these: `{ field: 'shipment_status', to: ['Shipped', 'Delivered'] }`. */
  readonly where?: StatusChangeFilter;
}

/**
 * The status changes of orders, from `from` to `to` as in {@link replay}, that `where` lets through:
 * by default all there are, and none that are still to come. A value is null where there was no
 * status (`from`), or is none any more (`to`).
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
 * The same with each change handed to `handle`: the next one comes when what it gave (a promise, an
 * Observable) is done. Emits what `handle` gives.
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

/** Whether a status change is what `where` says: for the handlers of a group. */
function matchesStatusChange(where: StatusChangeFilter): (change: OrderStatusChange) => boolean {
  const wanted = Object.entries(where).map(([name, values]) => {
    const set = new Set<unknown>(Array.isArray(values) ? values : [values]);
    return (change: OrderStatusChange) => set.has(change[name as keyof StatusChangeFilter]);
  });
  return (change) => wanted.every((matches) => matches(change));
}
