import type { Kafka } from 'kafkajs';
import type { Observable } from 'rxjs';
import { describe, expectTypeOf, it } from 'vitest';
import * as api from '../../src/exports/consume.ts';
import type { Consumed, Table } from '../../src/exports/consume.ts';
import type {
  ChangeEvent,
  DeadLetter,
  JsonObject,
  Order,
  OrderStatusChange,
  Registry,
  StatusChangeEvent,
} from '../../src/exports/schemas.ts';

declare const kafka: Kafka;
declare const registry: Registry;
const source = { kafka, registry };
const topics = api.topicsUnder();

describe('replay', () => {
  it('gives what the topic holds', () => {
    expectTypeOf(api.replay({ ...source, topic: topics.orders })).toEqualTypeOf<
      Observable<Consumed<ChangeEvent<Order>>>
    >();
    expectTypeOf(api.replay({ ...source, topic: topics.orderStatusChanges })).toEqualTypeOf<
      Observable<Consumed<OrderStatusChange>>
    >();
    expectTypeOf(api.replay({ ...source, topic: 'wine.products' })).toEqualTypeOf<
      Observable<Consumed<ChangeEvent<JsonObject>>>
    >();
    expectTypeOf(api.replay({ ...source, topic: 'wine.dead-letters' })).toEqualTypeOf<
      Observable<Consumed<DeadLetter>>
    >();
    expectTypeOf(api.replay({ ...source, topic: 'wine.order-status-changes' })).toEqualTypeOf<
      Observable<Consumed<OrderStatusChange>>
    >();
    expectTypeOf(api.replay({ ...source, topic: 'desk.tickets-status-changes' })).toEqualTypeOf<
      Observable<Consumed<StatusChangeEvent>>
    >();
    const anyName = String('wine.customers');
    expectTypeOf(api.replay({ ...source, topic: anyName })).toEqualTypeOf<
      Observable<Consumed<ChangeEvent<JsonObject>>>
    >();
  });

  it('gives what the handler gives', () => {
    expectTypeOf(
      api.replay({ ...source, topic: topics.orders }, ({ value }) =>
        Promise.resolve(value?.after?.order_number),
      ),
    ).toEqualTypeOf<Observable<number | null | undefined>>();
    expectTypeOf(
      api.replay({ ...source, topic: 'wine.products' }, ({ key }) => [key]),
    ).toEqualTypeOf<Observable<string | null>>();
  });

  it('takes places of every kind, and no others', () => {
    const options = { ...source, topic: topics.orders };
    api.replay({ ...options, from: 'beginning', to: 'never' });
    api.replay({ ...options, from: new Date(0), to: new Date(1) });
    api.replay({ ...options, from: { 0: '17' }, to: { 0: '99' } });
    // @ts-expect-error: an offset has 64 bits
    api.replay({ ...options, from: { 0: 17 } });
    // @ts-expect-error: nothing begins there
    api.replay({ ...options, from: 'never' });
  });
});

it('a table holds images, or what is kept of them', () => {
  const orders = { ...source, topic: topics.orders };
  expectTypeOf(api.table(orders)).toEqualTypeOf<Table<Order>>();
  expectTypeOf(api.table(orders, ({ sales_tax }) => sales_tax ?? 0)).toEqualTypeOf<Table<number>>();
  expectTypeOf(api.table({ ...source, topic: topics.products })).toEqualTypeOf<Table<JsonObject>>();
  expectTypeOf(api.table({ ...source, topic: 'shop.orders' })).toEqualTypeOf<Table<JsonObject>>();
  const ids = api.table({ ...source, topic: 'shop.orders' }, ({ id }) => id === 1);
  expectTypeOf(ids).toEqualTypeOf<Table<boolean>>();
  // @ts-expect-error: status changes have no images
  api.table({ ...source, topic: topics.orderStatusChanges });
});

it('certificates are told of, checked by a table alone', () => {
  const orders = { ...source, topic: topics.orders };
  api.table({
    ...orders,
    onCertificate: ({ checked, certificate, partitions }) => {
      expectTypeOf(checked).toEqualTypeOf<'agrees' | 'disagrees' | 'not checked'>();
      expectTypeOf(certificate.proof).toEqualTypeOf<'exact' | 'complete' | 'unsettled'>();
      expectTypeOf(partitions[0]!.found).toEqualTypeOf<
        { readonly records: number; readonly digest: string } | undefined
      >();
    },
  });
  api.replay({
    ...orders,
    onCertificate: (published) => {
      expectTypeOf(published.publishedAt).toEqualTypeOf<number>();
      expectTypeOf(published).not.toHaveProperty('checked'); // who only reads has nothing to compare
    },
    certificates: { topic: 'wine.certificates', account: 'east' },
  });
});

it('status changes are filtered by values that they can have', () => {
  api.orderStatusChanges({ ...source, where: { field: 'payment_status', to: ['Paid', null] } });
  expectTypeOf(api.orderStatusChanges(source)).toEqualTypeOf<
    Observable<Consumed<OrderStatusChange>>
  >();
  expectTypeOf(
    api.orderStatusChanges(source, ({ value }) => Promise.resolve(value?.order_number)),
  ).toEqualTypeOf<Observable<number | null | undefined>>();
  // @ts-expect-error: there is no such field
  api.orderStatusChanges({ ...source, where: { colour: 'red' } });
  // @ts-expect-error: there is no such subject
  api.orderStatusChanges({ ...source, where: { subject: 'customer' } });
});
