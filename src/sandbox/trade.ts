// What a sandbox's accounts have in common, by its seed, and the outlines that one account's records are made of.

import {
  alterClub,
  alterMember,
  makeClub,
  makeMember,
  alterCustomer,
  makeCustomer,
  alterProduct,
  makeProduct,
  alterStock,
  makeStock,
  makeCatalogue,
} from './goods.ts';
import { newOrder } from './new-order.ts';
import type { Buyer } from './new-order.ts';
import { editOrder, advanceOrder } from './order-life.ts';
import { isOrder } from './order-record.ts';
import type { OrderRecord } from './order-record.ts';
import { addressFields, makePerson, personBytes } from './people.ts';
import { Random, mix } from './random.ts';
import { isObject, RULES } from './resources.ts';
import type { JsonObject, JsonValue, Resource } from './resources.ts';
import { STAND_IN, Template } from './template.ts';
import type { PersonBytes } from './template.ts';
import type { Wine } from './goods.ts';

const HOUR_MS = 3_600_000;

/** People there are; customers beyond that share their names. */
const PEOPLE = 4_096;
/** Things for sale. */
const CATALOGUE = 200;
/** Most outlines of each kind of record, and fewest: a small list needs no thousand. */
const FEWEST_OUTLINES = 64;
const OUTLINES: Readonly<Record<Resource, number>> = {
  orders: 1_024,
  customers: 256,
  inventory: CATALOGUE,
  'wine-clubs': 64,
  'wine-club-members': 256,
  products: CATALOGUE,
};

/** When a record is made and of what number. */
interface Birth {
  readonly number: number;
  readonly customer: number;
  /** Epoch ms. */
  readonly at: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly buyer: Buyer;
}

/** What the accounts of a sandbox have in common, by its seed: wines, people, and what records are like. */
export class Trade {
  readonly seed: number;
  readonly #records: Readonly<Record<Resource, number>>;
  readonly #catalogue: readonly Wine[];
  readonly #people: PersonBytes[] = [];
  readonly #outlines = new Map<Resource, readonly Template[]>();

  /** @param records how many of each list an account begins with. */
  constructor(seed: number, records: Readonly<Record<Resource, number>>) {
    this.seed = seed;
    this.#records = records;
    this.#catalogue = makeCatalogue(seed, CATALOGUE);
  }

  /** Sets accounts apart: from 0 up to 1, by an account's seed, and 0 for the trade's own. */
  apart(seed: number): number {
    return ((seed ^ this.seed) >>> 0) / 2 ** 32;
  }

  /** A person's fields, as templates take them. */
  personAt(number: number): PersonBytes {
    return (this.#people[number] ??= personBytes(makePerson(this.seed, number)));
  }

  /** A person's fields, as {@link make} takes them. */
  buyerAt(number: number): Buyer {
    const { contact, address, recipient } = makePerson(this.seed, number);
    return {
      contact,
      shipping: addressFields('shipping', recipient.contact, recipient.address),
      billing: addressFields('billing', contact, address),
    };
  }

  /** Outlines that all accounts share: made once, as they take the most time and memory. */
  sharedOutlines(resource: Resource): readonly Template[] {
    let made = this.#outlines.get(resource);
    if (!made) this.#outlines.set(resource, (made = this.outlines(resource, this.seed)));
    return made;
  }

  /** Outlines for the records of a list, those first that came to be in the shortest time. */
  outlines(resource: Resource, seed: number): readonly Template[] {
    const at = STAND_IN.createdAt;
    const birth: Birth = {
      number: STAND_IN.number,
      customer: STAND_IN.customer,
      at,
      createdAt: new Date(at).toISOString(),
      updatedAt: STAND_IN.updatedAt,
      buyer: STAND_IN,
    };
    const length = Math.min(OUTLINES[resource], Math.max(FEWEST_OUTLINES, this.#records[resource]));
    const templates = Array.from({ length }, (_, k) => {
      const random = new Random(seed ^ 0x0071, k * 8 + Object.keys(RULES).indexOf(resource));
      const record = this.make(resource, birth, k, random);
      // The first has no past, so that there is one for a record made a moment ago.
      if (k > 0 && RULES[resource].dated) this.#live(resource, record, random);
      return new Template(record);
    });
    return templates.sort((a, b) => a.lifeMs - b.lifeMs);
  }

  /** A record on its first day. */
  make(resource: Resource, birth: Birth, place: number, random: Random): JsonObject {
    const wine = this.#catalogue[place % this.#catalogue.length]!;
    switch (resource) {
      case 'orders':
        return newOrder(birth, this.#catalogue, random);
      case 'customers':
        return makeCustomer(birth, birth.buyer.contact, random);
      case 'inventory':
        return makeStock(`${RULES.inventory.keyPrefix}${birth.number}`, wine, random);
      case 'wine-clubs':
        return makeClub(birth.number, place, random);
      case 'wine-club-members': {
        const at = new Date(birth.at).toISOString();
        return makeMember({ ...birth, at }, birth.buyer.contact, random);
      }
      case 'products':
        return makeProduct(birth, wine, random);
    }
  }

  /** Whether a record has the shape that {@link alter} counts on. */
  knows(resource: Resource, record: JsonValue): record is JsonObject {
    if (resource === 'orders') return isOrder(record);
    return isObject(record) && (resource !== 'products' || Array.isArray(record.variants));
  }

  /** Something that happens to a record; an order goes on with its life if it can. */
  alter(resource: Resource, record: JsonObject, at: string, random: Random): void {
    switch (resource) {
      case 'orders': {
        const order = record as OrderRecord; // as `knows` has seen
        const resting = random.chance(0.08);
        if (resting || advanceOrder(order, at, random) === undefined) editOrder(order, at, random);
        break;
      }
      case 'customers':
        return alterCustomer(record, random);
      case 'inventory':
        return alterStock(record, random);
      case 'wine-clubs':
        return alterClub(record, random);
      case 'wine-club-members':
        return alterMember(record, at, random);
      case 'products':
        return alterProduct(record, random);
    }
  }

  /** Gives an outline a past: some steps hours apart, seldom one more after many months. */
  #live(resource: Resource, record: JsonObject, random: Random): void {
    let at = STAND_IN.createdAt;
    for (let steps = random.below(resource === 'orders' ? 16 : 3); steps > 0; steps--) {
      at += random.between(1, 30 * HOUR_MS);
      this.alter(resource, record, new Date(at).toISOString(), random);
      if (record.fulfillment_status === 'fulfilled' && random.chance(0.2)) break;
    }
    if (random.chance(0.06)) {
      at += random.between(30, 600) * 24 * HOUR_MS;
      this.alter(resource, record, new Date(at).toISOString(), random);
    }
  }
}

/** The business of one account: what its seed makes of the trade that it shares with others. */
export class Winery {
  readonly #seed: number;
  readonly #customers: number;
  readonly #trade: Trade;
  /** Which person its first customer is: 0 where the account's seed is the trade's. */
  readonly #firstPerson: number;

  /** @param customers how many customers there are: orders and memberships are theirs. */
  constructor(seed: number, customers: number, trade: Trade) {
    this.#seed = seed;
    this.#customers = customers || PEOPLE;
    this.#trade = trade;
    this.#firstPerson = Math.floor(trade.apart(seed) * PEOPLE);
  }

  /** The place among the customers of the one a record belongs to; customers are their own. */
  customerOf(resource: Resource, id: number): number {
    return resource === 'customers' ? id : mix(this.#seed ^ 0xc057, id) % this.#customers;
  }

  /** A customer's fields, as templates take them. */
  personAt(customer: number): PersonBytes {
    return this.#trade.personAt(this.#personOf(customer));
  }

  /** A customer's fields, as a new record takes them. */
  buyerAt(customer: number): Buyer {
    return this.#trade.buyerAt(this.#personOf(customer));
  }

  /** What the records of a list are made of. */
  outlines(resource: Resource): readonly Template[] {
    // Without times a shared outline would be the same record in every account.
    return RULES[resource].dated
      ? this.#trade.sharedOutlines(resource)
      : this.#trade.outlines(resource, this.#seed);
  }

  #personOf(customer: number): number {
    return (this.#firstPerson + (customer % Math.min(this.#customers, PEOPLE))) % PEOPLE;
  }
}
