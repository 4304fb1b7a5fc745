import { describe, expectTypeOf, it } from 'vitest';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import type { Topic } from '../../src/consumers/topic.ts';
import type {
  ChangeEvent,
  ClubPackage,
  Fulfillment,
  Order,
  OrderEdit,
  OrderItem,
  Tender,
  Tracking,
} from '../../src/exports/schemas.ts';

declare const order: Order;

describe('Order', () => {
  it('is what the values of the topic of orders hold', () => {
    expectTypeOf(topicsUnder().orders).toEqualTypeOf<Topic<ChangeEvent<Order>>>();
  });

  it('has every documented field, each of which can be null', () => {
    expectTypeOf(order.order_number).toEqualTypeOf<number | null>();
    expectTypeOf(order.updated_at).toEqualTypeOf<number | null>();
    expectTypeOf(order.date_of_birth).toEqualTypeOf<string | null>();
    expectTypeOf(order.total_price).toEqualTypeOf<number | null>();
    expectTypeOf(order.customer_tags).toEqualTypeOf<readonly string[] | null>();
    expectTypeOf(order.order_items).toEqualTypeOf<readonly OrderItem[] | null>();
    expectTypeOf(order.order_edit).toEqualTypeOf<readonly OrderEdit[] | null>();
    expectTypeOf(order.fulfillment_info).toEqualTypeOf<readonly Fulfillment[] | null>();
    expectTypeOf(order.tender_info).toEqualTypeOf<readonly Tender[] | null>();
    expectTypeOf(order.club_package_info).toEqualTypeOf<ClubPackage | null>();
    expectTypeOf<Fulfillment['tracking']>().toEqualTypeOf<Tracking | null>();
    expectTypeOf<OrderEdit['summary']>().toEqualTypeOf<string | null>();
    expectTypeOf<ClubPackage['is_selection_completed']>().toEqualTypeOf<boolean | null>();
  });

  it('says what was null, and what no field holds', () => {
    expectTypeOf(order.nulls).toEqualTypeOf<readonly string[]>();
    expectTypeOf(order.unmapped).toEqualTypeOf<Readonly<Record<string, string>>>();
  });

  it('has no optional fields, and can only be read', () => {
    expectTypeOf<Required<Order>>().toEqualTypeOf<Order>();
    expectTypeOf<Readonly<Order>>().toEqualTypeOf<Order>();
    // @ts-expect-error an event is not changed by who reads it
    order.order_number = 1;
    // @ts-expect-error elements aren't null: an empty one stands in for what can't be held
    const item: null = order.order_items![0]!;
    return item;
  });

  it('can be told apart after a null of a tombstone or of a side', () => {
    const after = (event: ChangeEvent<Order>): number | null => event.after?.order_number ?? null;
    expectTypeOf(after).returns.toEqualTypeOf<number | null>();
    // @ts-expect-error a deletion has no image after it
    return (event: ChangeEvent<Order>) => event.after.order_number;
  });
});
