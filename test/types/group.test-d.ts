import type { Kafka } from 'kafkajs';
import { of } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expectTypeOf, it } from 'vitest';
import * as api from '../../src/exports/consume.ts';
import type { Consumed, Handled } from '../../src/exports/consume.ts';
import type { ChangeEvent, OrderStatusChange, Registry } from '../../src/exports/schemas.ts';

declare const kafka: Kafka;
declare const registry: Registry;
const topics = api.topicsUnder();
const group = { kafka, registry, groupId: 'stock' };
const topic = topics.orderStatusChanges;

describe('subscribeGroup', () => {
  it('hands over what the topic holds', () => {
    api.subscribeGroup({ ...group, topic }, (event) => {
      expectTypeOf(event).toEqualTypeOf<Consumed<OrderStatusChange>>();
    });
    api.subscribeGroup({ ...group, topic: topics.orders }, ({ value }) => {
      expectTypeOf(value?.after?.order_number).toEqualTypeOf<number | null | undefined>();
    });
  });

  it('hands over what a topic holds that is given by its name', () => {
    api.subscribeGroup({ ...group, topic: 'shop.items' }, (event) => {
      expectTypeOf(event).toEqualTypeOf<Consumed<ChangeEvent>>();
    });
    api.subscribeGroup({ ...group, topic: 'shop.order-status-changes' }, (event) => {
      expectTypeOf(event).toEqualTypeOf<Consumed<OrderStatusChange>>();
    });
  });

  it('emits the event with what the handler came to', () => {
    type Emitted<R> = Observable<Handled<OrderStatusChange, R>>;
    const options = { ...group, topic };
    expectTypeOf(api.subscribeGroup(options, () => of(1, 2))).toEqualTypeOf<Emitted<number>>();
    expectTypeOf(api.subscribeGroup(options, ({ key }) => Promise.resolve(key))).toEqualTypeOf<
      Emitted<string | null>
    >();
    expectTypeOf(
      api.subscribeGroup(options, async () => {
        await Promise.resolve();
      }),
    ).toEqualTypeOf<Emitted<void>>();
    expectTypeOf(
      api.subscribeGroup(options, ({ key }) => (key === null ? undefined : of(key))),
    ).toEqualTypeOf<Emitted<string>>();
    expectTypeOf<Handled<OrderStatusChange, number>['result']>().toEqualTypeOf<
      number | undefined
    >();
  });

  it('needs a group, and a handler that can be waited for', () => {
    // @ts-expect-error a group has a name
    api.subscribeGroup({ kafka, registry, topic }, () => undefined);
    // @ts-expect-error a number can't be waited for
    api.subscribeGroup({ ...group, topic }, () => 1);
    // @ts-expect-error no such place
    api.subscribeGroup({ ...group, topic, from: 'middle' }, () => undefined);
  });
});
