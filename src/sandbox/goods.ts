// Random records of every list except orders, and changes to them. The API's description lists no fields of them: they are invented.

import type { NewRecordBasics } from './people.ts';
import { Random } from './random.ts';
import type { JsonObject } from './resources.ts';

/** An article for sale: a wine or other merchandise. */
export interface Wine {
  readonly product_name: string;
  readonly variant_name: string;
  readonly product_type: string;
  readonly sku: string;
  readonly cents: number;
  readonly vintage: number | null;
  readonly varietal: string | null;
}

const VARIETALS = [
  'Cabernet Sauvignon',
  'Pinot Noir',
  'Chardonnay',
  'Zinfandel',
  'Syrah',
  'Merlot',
  'Rosé',
  'Sauvignon Blanc',
  'Gewürztraminer',
  'Grüner Veltliner',
  'Albariño',
  'Mourvèdre',
];
const BLOCKS = ['Estate', 'Reserve', 'Old Vine', 'Hillside', 'Block 7', 'Côte', 'Founder’s'];
const SIZES = [
  ['750 ml', 1],
  ['375 ml', 0.55],
  ['1.5 L', 2.1],
] as const;
const GOODS = [
  ['Corkscrew "Sommelier"', 'Merchandise', 2_450],
  ['Tasting for two', 'Event', 9_000],
  ['Gift card', 'Gift Card', 5_000],
  ['Olive oil', 'Food', 1_875],
] as const;

/** Returns `count` articles for sale; the same seed gives the same articles. */
export function makeCatalogue(seed: number, count: number): readonly Wine[] {
  return Array.from({ length: count }, (_, k) => {
    const random = new Random(seed ^ 0x3ca7a, k);
    const sku = `CS-${100_001 + k}`;
    const goods = k % 16 === 15 ? GOODS[(k >> 4) % GOODS.length]! : undefined;
    if (goods) {
      const [name, type, cents] = goods;
      return {
        product_name: name,
        variant_name: 'Default',
        product_type: type,
        sku,
        cents,
        vintage: null,
        varietal: null,
      };
    }
    const vintage = random.between(2016, 2023);
    const varietal = random.pick(VARIETALS);
    const [size, factor] = random.pick([SIZES[0], SIZES[0], SIZES[0], SIZES[1], SIZES[2]]);
    return {
      product_name: `${vintage} ${random.pick(BLOCKS)} ${varietal}`,
      variant_name: size,
      product_type: 'Wine',
      sku,
      cents: Math.round(random.between(18, 140) * factor) * 100 - random.pick([0, 1, 5, 50]),
      vintage,
      varietal,
    };
  });
}

export function makeProduct(basics: NewRecordBasics, wine: Wine, random: Random): JsonObject {
  return {
    id: basics.number,
    title: wine.product_name,
    type: wine.product_type,
    vintage: wine.vintage,
    varietal: wine.varietal,
    is_active: random.chance(0.9),
    description: random.pick([
      null,
      'Dark fruit, cedar & a long finish.',
      'Ein Wein für den Sommer ☀️',
    ]),
    ...(wine.vintage === null ? {} : { alcohol_percent: random.between(115, 155) / 10 }),
    variants: [{ variant_name: wine.variant_name, price: wine.cents / 100, weight_lb: 2.65 }],
    created_at: basics.createdAt,
    updated_at: basics.updatedAt,
  };
}

export function alterProduct(product: JsonObject, random: Random): void {
  if (random.chance(0.4)) {
    product.is_active = product.is_active !== true;
    return;
  }
  const [variant, ...others] = product.variants as JsonObject[];
  product.variants = [{ ...variant, price: random.between(1_000, 15_000) / 100 }, ...others];
}

/** Creates an inventory record. Inventory has no dates, so only a full scan finds its changes. */
export function makeStock(sku: string, wine: Wine, random: Random): JsonObject {
  const onHand = random.below(600);
  return {
    sku,
    product_name: wine.product_name,
    variant_name: wine.variant_name,
    location: random.pick(['Tasting Room', 'Warehouse', 'Cellar №2']),
    quantity_on_hand: onHand,
    quantity_reserved: Math.min(onHand, random.below(20)),
    reorder_point: random.pick([null, 12, 24]),
    cost: random.pick([null, Math.round(wine.cents * 0.4) / 100]),
  };
}

/** Changes the quantities of an inventory record at random: a sale or a delivery, and a new number of reserved items. */
export function alterStock(item: JsonObject, random: Random): void {
  const onHand = Number(item.quantity_on_hand) || 0;
  item.quantity_on_hand = random.chance(0.15)
    ? onHand + 120
    : Math.max(0, onHand - random.between(1, 6));
  item.quantity_reserved = Math.min(Number(item.quantity_on_hand), random.below(20));
}

export const CLUB_NAMES = [
  'Red Only',
  'Cellar Circle',
  'Rosé All Day',
  'Founder’s Club',
  'Les Amis',
  'Bubbles',
  'Library',
  'Winemaker’s Table',
] as const;

export function makeClub(number: number, place: number, random: Random): JsonObject {
  const name = CLUB_NAMES[place % CLUB_NAMES.length]!;
  return {
    id: number,
    name: place < CLUB_NAMES.length ? name : `${name} ${Math.floor(place / CLUB_NAMES.length) + 1}`,
    description: random.pick([null, 'Six bottles of the estate, four times a year.']),
    frequency: random.pick(['monthly', 'quarterly', 'twice_a_year']),
    discount_percent: random.pick([10, 12.5, 15, 20]),
    bottle_count: random.pick([3, 6, 12]),
    is_active: true,
    packages: [{ package_number: 1, package_type: 'Curated', price: random.between(90, 400) }],
  };
}

export function makeMember(basics: NewRecordBasics, random: Random): JsonObject {
  return {
    id: basics.number,
    customer_id: basics.customer,
    ...basics.buyer.contact,
    wine_club_id: random.between(1, CLUB_NAMES.length),
    status: random.pick(['active', 'active', 'active', 'on_hold', 'cancelled']),
    joined_at: new Date(basics.at).toISOString(),
    cancelled_at: null,
    shipments: random.between(0, 30),
    preferences: random.pick([null, {}, { varietals: ['Pinot Noir', 'Rosé'], sweetness: 2 }]),
    created_at: basics.createdAt,
    updated_at: basics.updatedAt,
  };
}

export function alterClub(club: JsonObject, random: Random): void {
  club.discount_percent = random.pick([10, 12.5, 15, 17.5, 20]);
  club.description = random.pick([null, 'Six bottles, four times a year.', 'À la carte']);
}

export function alterMember(member: JsonObject, at: string, random: Random): void {
  const next = { active: ['on_hold', 'cancelled'], on_hold: ['active', 'cancelled'] } as const;
  const { status } = member;
  member.status =
    status === 'active' || status === 'on_hold' ? random.pick(next[status]) : 'active';
  member.cancelled_at = member.status === 'cancelled' ? at : null;
  member.shipments = (Number(member.shipments) || 0) + 1;
}

const TAGS = ['newsletter', 'vip', 'local', 'Großkunde', 'gift-giver'];

export function makeCustomer(basics: NewRecordBasics, random: Random): JsonObject {
  return {
    id: basics.number,
    ...basics.buyer.contact,
    customer_type: random.pick(['Retail', 'Club Member', 'Trade', null]),
    tags: TAGS.filter(() => random.chance(0.2)),
    accepts_marketing: random.chance(0.6),
    lifetime_value: random.below(900_000) / 100,
    order_count: random.below(60),
    loyalty: random.pick([null, { tier: 'gold', points: 1_250.5 }, { tier: 'none', points: 0 }]),
    notes: random.pick([null, null, '', 'prefers Grüner Veltliner']),
    created_at: basics.createdAt,
    updated_at: basics.updatedAt,
  };
}

/** Makes a random change to a customer. Names and contact data are not changed. */
export function alterCustomer(customer: JsonObject, random: Random): void {
  switch (random.below(3)) {
    case 0:
      customer.lifetime_value = random.below(900_000) / 100;
      customer.order_count = random.below(60);
      break;
    case 1:
      customer.notes = random.pick([null, '', 'moved to Kraków', 'allergic to sulfites']);
      break;
    default:
      customer.accepts_marketing = customer.accepts_marketing !== true;
  }
}
