import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import type { Resource } from '../../src/description/description.ts';
import type { Chance } from '../support/chance.ts';

export type Json = Record<string, unknown>;

/** Marks a text that {@link textOf} writes as it is, for numbers that JavaScript would round. */
const RAW = '@@';
const NAMES = ['Ana', 'Zoë', '李雷', "O'Neil", 'Jürgen 🍷', ''];
const TAGS = ['club', 'vip', 'café', 'line\nbreak', '"quoted"'];
const STATUSES = ['pending', 'paid', 'shipped', 'refunded', 'held'];

/** Where a status of an order stands: nine status fields in all. */
const STATUS_PLACES = [
  ['payment_status'],
  ['fulfillment_status'],
  ['order_edit', 'status'],
  ['fulfillment_info', 'status'],
  ['fulfillment_info', 'shipment_status'],
  ['club_package_info', 'package_status'],
  ['club_package_info', 'customer_package_status'],
  ['club_package_info', 'wine_club_order_status'],
  ['club_package_info', 'compliance_status'],
] as const;

/** JSON text of a record, with its marked numbers as they are. */
export function textOf(record: Json): string {
  return JSON.stringify(record).replaceAll(/"@@([^"]*)"/g, '$1');
}

/** Whether the API's records of a list have `created_at` and `updated_at`. */
export function isDated(resource: Resource): boolean {
  return resource !== 'inventory' && resource !== 'wine-club-members';
}

/** The fields that are the key of a list's records in a run: in each seed another of the candidates. */
export function keyFieldsOf(resource: Resource, seed: number): readonly string[] {
  const { keyCandidates } = listNamed(WINE, resource);
  return keyCandidates[seed % keyCandidates.length]!;
}

/** Makes the records of one list. */
export class GoldenRecords {
  readonly #resource: Resource;
  readonly #keyFields: readonly string[];
  readonly #chance: Chance;
  /** Number of status changes so far: each one changes the next field. */
  #statuses = 0;
  /** How far the API's records have grown: 0 as at the start, 1 with new fields, 2 with other types in them. */
  growth = 0;

  constructor(resource: Resource, keyFields: readonly string[], chance: Chance) {
    this.#resource = resource;
    this.#keyFields = keyFields;
    this.#chance = chance;
  }

  /** A new record. @param at When it is created, in epoch ms. */
  create(number: number, at: number): Json {
    const stamp = new Date(at).toISOString();
    return {
      ...this.#key(number),
      ...(isDated(this.#resource) && { created_at: stamp, updated_at: stamp }),
      ...this.#person(number),
      ...(this.#resource === 'orders' ? this.#order(number, stamp) : this.#item(number)),
      ...this.#grown(number),
    };
  }

  /** The record after a change of some of its fields. */
  change(record: Json, number: number, at: number): Json {
    const stamp = new Date(at).toISOString();
    const next: Json = {
      ...record,
      ...(isDated(this.#resource) && { updated_at: stamp }),
      ...this.#grown(number),
    };
    if (this.#resource === 'orders') return this.#withStatus(next, stamp);
    const { count } = this.#parts();
    next.quantity = count;
    if (this.#chance.is(0.3)) next.name = this.#chance.pick(NAMES);
    if (this.#chance.is(0.3)) next.tags = this.#chance.shuffled(TAGS).slice(0, count % 4);
    if (this.#chance.is(0.2)) next.email = `new${number}@example.com`;
    if (this.#chance.is(0.2)) delete next.discontinued;
    return next;
  }

  #key(number: number): Json {
    const isText = (field: string) => /uuid|sku|handle/.test(field);
    return Object.fromEntries(
      this.#keyFields.map((field, nth) => [
        field,
        isText(field) ? `${field}-é-${number}` : number + nth,
      ]),
    );
  }

  #person(number: number): Json {
    return {
      first_name: this.#chance.pick(NAMES),
      email: `person${number % 7}@example.com`,
      phone: `+1 707 555 ${1_000 + number}`,
    };
  }

  #item(number: number): Json {
    const { count, cents } = this.#parts();
    return {
      name: this.#chance.pick(NAMES),
      quantity: count,
      price: cents / 100,
      weight: this.#chance.pick([0, 0.1, 1e21, 2.5e-7, `${RAW}-0.0`, `${RAW}12345678901234567890`]),
      active: this.#chance.is(0.5),
      vintage: this.#chance.pick([2019, '2020', null]),
      tags: this.#chance.shuffled(TAGS).slice(0, count % 4),
      bottled: `20${10 + (count % 9)}-0${1 + (count % 9)}-1${count % 9}`,
      ...(this.#chance.is(0.5) && { discontinued: false }),
      origin: { region: this.#chance.pick(NAMES), altitude: this.#chance.pick([120, 85.5, null]) },
      variants: Array.from({ length: count % 3 }, (_, n) => ({
        variant: `V${number}-${n}`,
        price: cents / 10 + n,
        ...(n > 0 && { note: null }),
      })),
    };
  }

  #order(number: number, stamp: string): Json {
    const { count, cents } = this.#parts();
    const status = () => this.#chance.pick(STATUSES);
    return {
      order_date: stamp,
      date_of_birth: '1980-02-29',
      subtotal_price: cents / 100,
      total_discounts: `${RAW}0.00`,
      total_price: `${RAW}${cents}.12345`,
      tip: null,
      order_type: 'web',
      payment_status: status(),
      fulfillment_status: status(),
      item_count: count,
      order_items: Array.from({ length: 1 + (count % 3) }, (_, n) => ({
        product_name: this.#chance.pick(NAMES),
        sku: `SKU-${n}`,
        quantity: n + 1,
        price: cents / 100,
      })),
      order_discounts: { auto_discount: null, promocode_discount: 1.5 },
      customer_tags: this.#chance.shuffled(TAGS).slice(0, count % 4),
      notes: this.#chance.pick(NAMES),
      order_edit: [
        { order_number: number, created_at: stamp, status: status(), activity: 'edited' },
      ],
      club_package_info: {
        wine_club_name: this.#chance.pick(NAMES),
        package_status: status(),
        customer_package_status: status(),
        wine_club_order_status: status(),
        compliance_status: status(),
        package_number: count,
        is_selection_completed: true,
      },
      fulfillment_info: [
        {
          fulfillment_id: `F${number}`,
          status: status(),
          shipment_status: null,
          created_at: stamp,
          updated_at: stamp,
          shipping_price: 12.5,
          notify_customer: false,
        },
      ],
      tender_info: [
        { payment_type: 'card', last_four: '4242', amount: cents / 100, created_at: stamp },
      ],
    };
  }

  #withStatus(order: Json, stamp: string): Json {
    const [field, part] = STATUS_PLACES[this.#statuses++ % STATUS_PLACES.length]!;
    const next = (was: unknown) => STATUSES[(STATUSES.indexOf(String(was)) + 1) % STATUSES.length];
    if (part === undefined) return { ...order, [field]: next(order[field]) };
    const changed = (one: Json) => ({
      ...one,
      [part]: next(one[part]),
      ...(field === 'fulfillment_info' && { updated_at: stamp }),
    });
    const of = order[field];
    return { ...order, [field]: Array.isArray(of) ? of.map(changed) : changed(of as Json) };
  }

  #grown(number: number): Json {
    if (this.growth === 0) return {};
    const isWider = this.growth > 1;
    return {
      rating: isWider ? 4.5 + (number % 3) : number % 5,
      cellar: { shelf: isWider ? `S${number % 5}` : number % 5, tested_on: ['nose', 'palate'] },
    };
  }

  #parts() {
    return { count: this.#chance.below(20), cents: this.#chance.below(100_000) };
  }
}
