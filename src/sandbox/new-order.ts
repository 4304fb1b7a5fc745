import { CLUB_NAMES, type Wine } from './goods.ts';
import type { ClubPackage, OrderItem, OrderRecord } from './order-record.ts';
import type { NewRecordBasics } from './people.ts';
import type { Random } from './random.ts';
import type { JsonObject } from './resources.ts';

const NOTES = [
  'Leave with the doorman',
  'Gift: "Happy Birthday, Zoë!" 🎂',
  'Bitte nicht bei Hitze senden',
  'Call on arrival\n(gate code 4711)',
  '冷蔵で',
];
const TAGS = ['vip', 'trade', 'wholesale', 'friends & family', 'müller-list', 'allocation'];
const NO_ADDRESS: JsonObject = {
  shipping_first_name: null,
  shipping_last_name: null,
  shipping_birth_date: null,
  shipping_phone: null,
  shipping_address_line1: null,
  shipping_address_city: null,
  shipping_address_state: null,
  shipping_address_zip_code: null,
};

const money = (cents: number): number => Math.round(cents) / 100;

/** Creates an order that is neither paid nor shipped. The total is consistent with the other amounts. */
export function newOrder(
  basics: NewRecordBasics,
  catalogue: readonly Wine[],
  random: Random,
): OrderRecord {
  const type = random.pick([
    'Website',
    'Website',
    'Website',
    'Wine Club',
    'Wine Club',
    'POS',
    'Phone',
  ]);
  const club = type === 'Wine Club';
  const delivery =
    type === 'POS'
      ? random.pick(['Carry Out', 'Ship'])
      : random.pick(['Ship', 'Ship', 'Ship', 'Pickup']);
  const lines = pickLines(catalogue, random);
  const bottles = lines.reduce((sum, line) => sum + line.quantity, 0);
  const subtotal = lines.reduce<number>(
    (sum, line) => sum + Math.round(line.price * 100) * line.quantity,
    0,
  );
  const discounts = pickDiscounts(subtotal, club, type === 'POS', random);
  const discount = Object.values(discounts).reduce<number>((sum, amount) => sum + (amount ?? 0), 0);
  const shipping = delivery === 'Ship' ? random.pick([0, 1_500, 2_250, 3_500]) : 0;
  const salesTax = Math.round((subtotal - discount) * 0.0825);
  const crv = random.chance(0.6) ? bottles * 10 : 0;
  const tip = type === 'POS' && random.chance(0.5) ? random.between(1, 40) * 100 : 0;
  const amounts = Object.fromEntries(
    Object.entries(discounts).map(([kind, cents]) => [kind, cents === null ? null : money(cents)]),
  );
  return {
    order_number: basics.number,
    created_at: basics.createdAt,
    updated_at: basics.updatedAt,
    order_date: new Date(basics.at).toISOString(),
    ...basics.buyer.contact,
    subtotal_price: money(subtotal),
    total_discounts: money(discount),
    shipping_price: money(shipping),
    sales_tax: money(salesTax),
    crv: money(crv),
    total_tax: money(salesTax + crv),
    total_price: money(subtotal - discount + shipping + salesTax + crv + tip),
    tip: type === 'POS' ? money(tip) : random.pick([null, 0]),
    delivery_preference: delivery,
    order_type: type,
    order_subtype: random.pick([null, club ? 'Club Shipment' : 'Standard', 'Allocation']),
    payment_status: 'pending',
    fulfillment_status: 'unfulfilled',
    item_count: bottles,
    order_items: lines,
    order_discounts: discount === 0 && random.chance(0.5) ? null : amounts,
    ...(delivery === 'Ship' ? basics.buyer.shipping : random.chance(0.5) ? NO_ADDRESS : {}),
    ...basics.buyer.billing,
    customer_type: random.pick(['Retail', 'Club Member', 'Trade', null]),
    customer_tags: random.chance(0.5) ? [] : TAGS.filter(() => random.chance(0.25)),
    class: random.pick([null, 'DTC', 'DTC', 'Trade']),
    notes: random.pick([null, null, null, '', random.pick(NOTES)]),
    payment_type: random.pick(['Credit Card', 'Credit Card', 'Credit Card', 'Gift Card', null]),
    ...(random.chance(0.5) ? { order_edit: [] } : {}),
    ...(club
      ? { club_package_info: newPackage(basics.at, random) }
      : random.chance(0.5)
        ? { club_package_info: null }
        : {}),
    fulfillment_info: [],
    tender_info: [],
  };
}

function pickLines(catalogue: readonly Wine[], random: Random): OrderItem[] {
  const count = random.pick([1, 1, 2, 2, 3, 4]);
  return Array.from({ length: count }, () => {
    const { product_name, variant_name, sku, product_type, cents } = random.pick(catalogue);
    const quantity = random.pick([1, 1, 2, 3, 6]);
    return { product_name, variant_name, sku, product_type, quantity, price: money(cents) };
  });
}

/** Returns the amount of each kind of discount on an order, in cents; null for kinds that do not apply. */
function pickDiscounts(subtotal: number, club: boolean, pos: boolean, random: Random) {
  const share = (applies: boolean, percent: number) =>
    applies ? Math.round((subtotal * percent) / 100) : null;
  return {
    auto_discount: share(club, random.pick([10, 15, 20])),
    promocode_discount: share(!club && random.chance(0.2), random.pick([5, 10])),
    pos_discount: share(pos && random.chance(0.3), 5),
    custom_discount: random.chance(0.05) ? random.pick([0, 500]) : null,
  };
}

function newPackage(at: number, random: Random): ClubPackage {
  const opened = new Date(at).toISOString();
  return {
    wine_club_name: random.pick(CLUB_NAMES),
    subscription_package_type: random.pick(['Quarterly', 'Monthly', 'Twice a year']),
    package_type: random.pick(['Curated', 'Customizable']),
    package_status: 'open',
    customer_package_status: 'pending_selection',
    package_message: random.pick([null, 'Enjoy the spring release – à votre santé!']),
    wine_club_order_status: 'scheduled',
    compliance_status: 'pending',
    wine_club_message: random.pick([null, '', 'Thank you for being a member']),
    package_number: random.between(1, 40),
    payment_date: null,
    open_at: opened,
    closed_at: null,
    opened_date: opened,
    closed_date: null,
    is_selection_completed: false,
  };
}
