import { field, listOf, objectOf, part } from './odd-fields.ts';
import type { Field } from './odd-fields.ts';
import {
  anyNumber,
  date,
  flag,
  integer,
  number,
  oddDate,
  oddTree,
  price,
  text,
  time,
} from './odd-values.ts';
import type { Maker } from './odd-values.ts';

/** Few of an order's money fields hold what no decimal of four places does. */
const money: Maker = (chance) => (chance.is(0.15) ? anyNumber(chance) : price(chance));
const count: Maker = (chance) => (chance.is(0.1) ? anyNumber(chance) : integer(chance));
const countText: Maker = (chance) => String(chance.below(4));

const each = (make: Maker, names: string): Field[] =>
  names.split(' ').map((name) => field(name, make));

const LINE_ITEM = objectOf(
  ...each(text, 'product_name variant_name sku product_type'),
  field('quantity', count),
  field('price', money),
  field('gift wrap', flag, { share: 0.1 }),
);

const EDIT = objectOf(
  field('order_number', count),
  field('created_at', time),
  part('current_operation', objectOf(...each(countText, 'newItems deletedItems updatedItems'))),
  field('summary', oddTree),
  field('custom_refund_amount', money),
  ...each(text, 'order_delivery_method order_edit_type status activity notes'),
);

const CLUB_PACKAGE = objectOf(
  ...each(text, 'wine_club_name subscription_package_type package_type package_status'),
  ...each(text, 'customer_package_status package_message wine_club_order_status'),
  ...each(text, 'compliance_status wine_club_message'),
  field('package_number', count),
  ...each(time, 'payment_date open_at closed_at opened_date closed_date'),
  field('is_selection_completed', flag),
);

const FULFILLMENT = objectOf(
  ...each(text, 'fulfillment_id fulfillment_number status shipment_status service package_slip'),
  ...each(time, 'created_at updated_at history_created_at'),
  field('shipping_price', money),
  field('notify_customer', flag),
  part(
    'tracking',
    objectOf(
      ...each(text, 'company_name tracking_number tracking_url'),
      part('tracking_numbers', listOf(text)),
      part('tracking_urls', listOf(text)),
    ),
  ),
);

const TENDER = objectOf(
  ...each(text, 'payment_type status card_type card_brand last_four'),
  field('amount', money),
  field('created_at', time),
  part('card_expiry', objectOf(...each(countText, 'month year'))),
);

/** The documented fields of an order, its number aside. */
export const ORDER_FIELDS: readonly Field[] = [
  ...each(time, 'created_at updated_at order_date'),
  ...each(text, 'first_name last_name phone email'),
  ...each(
    (chance) => (chance.is(0.1) ? oddDate : date)(chance),
    'date_of_birth shipping_birth_date',
  ),
  field('billing_birth_date', date),
  ...each(money, 'subtotal_price total_discounts shipping_price sales_tax crv total_tax'),
  ...each(money, 'total_price tip'),
  ...each(text, 'delivery_preference order_type order_subtype payment_status fulfillment_status'),
  field('item_count', count),
  part('order_items', listOf(LINE_ITEM)),
  part(
    'order_discounts',
    objectOf(...each(money, 'auto_discount promocode_discount pos_discount custom_discount')),
  ),
  ...each(text, 'shipping_first_name shipping_last_name shipping_phone'),
  ...each(text, 'shipping_address_line1 shipping_address_line2 shipping_address_city'),
  ...each(text, 'shipping_address_state shipping_address_zip_code'),
  ...each(text, 'billing_first_name billing_last_name billing_phone'),
  ...each(text, 'billing_address_line1 billing_address_line2 billing_address_city'),
  ...each(text, 'billing_address_state billing_address_zip_code'),
  ...each(text, 'customer_type class notes payment_type'),
  part('customer_tags', listOf(text)),
  part('order_edit', listOf(EDIT, 2)),
  part('club_package_info', CLUB_PACKAGE, { share: 0.4 }),
  part('fulfillment_info', listOf(FULFILLMENT, 2)),
  part('tender_info', listOf(TENDER, 2)),
  field('Order Total (€)', () => number('1.0'), { share: 0.05 }),
];
