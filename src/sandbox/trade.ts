// Data that accounts share, derived from the sandbox's seed, and the generated data of one account.

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
import { editOrder, advanceOrder } from './order-life.ts';
import { isOrder, type OrderRecord } from './order-record.ts';
import { makeBuyer, personBytes, type Buyer, type NewRecordBasics } from './people.ts';
import { Random, mix } from './random.ts';
import { isObject, RULES, type JsonObject, type JsonValue, type Resource } from './resources.ts';
import { PLACEHOLDERS, Template, type PersonBytes } from './template.ts';
import type { Wine } from './goods.ts';

const HOUR_MS = 3_600_000;

/** Number of distinct generated people. If an account has more customers, some of them have equal personal fields. */
const PEOPLE = 4_096;
const CATALOGUE = 200;
/**
 * Minimum number of templates (records from which the sandbox makes others) of a list, even of a short one. If {@link MAX_TEMPLATES} is
 * lower, it takes precedence.
 */
const MIN_TEMPLATES = 64;
/** Maximum number of templates of each list. In a list with more records, several records are copied from the same template. */
const MAX_TEMPLATES: Readonly<Record<Resource, number>> = {
  orders: 1_024,
  customers: 256,
  inventory: CATALOGUE,
  'wine-clubs': 64,
  'wine-club-members': 256,
  products: CATALOGUE,
};

/** Generated data that the accounts share: wines, people, and templates of records. */
export class Trade {
  readonly seed: number;
  readonly #records: Readonly<Record<Resource, number>>;
  readonly #catalogue: readonly Wine[];
  readonly #people: PersonBytes[] = [];
  readonly #templates = new Map<Resource, readonly Template[]>();

  /** @param records Initial number of records of each list in one account. */
  constructor(seed: number, records: Readonly<Record<Resource, number>>) {
    this.seed = seed;
    this.#records = records;
    this.#catalogue = makeCatalogue(seed, CATALOGUE);
  }

  /**
   * Returns a fraction (at least 0, less than 1) that is different for each account's `seed`, and is 0 for the first account. It determines
   * the account's first customer and shifts the times of its random changes.
   */
  apart(seed: number): number {
    return ((seed ^ this.seed) >>> 0) / 2 ** 32;
  }

  /**
   * Returns the personal fields of the invented person with this number as JSON bytes, to be inserted at the placeholders of a {@link
   * Template}.
   */
  personAt(number: number): PersonBytes {
    return (this.#people[number] ??= personBytes(makeBuyer(this.seed, number)));
  }

  /**
   * Returns a list's templates (generated records, from which further ones are made). All accounts share them, because creating them takes
   * most of the time and memory.
   */
  sharedTemplates(resource: Resource): readonly Template[] {
    let made = this.#templates.get(resource);
    if (!made) this.#templates.set(resource, (made = this.templates(resource, this.seed)));
    return made;
  }

  /**
   * Creates the templates of a list: generated records that are copied with other numbers, dates and contact fields. They are sorted by
   * {@link Template.lifeMs}.
   */
  templates(resource: Resource, seed: number): readonly Template[] {
    const at = PLACEHOLDERS.createdAt;
    const birth: NewRecordBasics = {
      number: PLACEHOLDERS.number,
      customer: PLACEHOLDERS.customer,
      at,
      createdAt: new Date(at).toISOString(),
      updatedAt: PLACEHOLDERS.updatedAt,
      buyer: PLACEHOLDERS,
    };
    const length = Math.min(
      MAX_TEMPLATES[resource],
      Math.max(MIN_TEMPLATES, this.#records[resource]),
    );
    const templates = Array.from({ length }, (_, k) => {
      const random = new Random(seed ^ 0x0071, k * 8 + Object.keys(RULES).indexOf(resource));
      const record = this.make(resource, birth, k, random);
      // The first template has no history, so that it fits a record created a moment ago.
      if (k > 0 && RULES[resource].dated) this.#live(resource, record, random);
      return new Template(record);
    });
    return templates.sort((a, b) => a.lifeMs - b.lifeMs);
  }

  make(resource: Resource, birth: NewRecordBasics, place: number, random: Random): JsonObject {
    const wine = this.#catalogue[place % this.#catalogue.length]!;
    switch (resource) {
      case 'orders':
        return newOrder(birth, this.#catalogue, random);
      case 'customers':
        return makeCustomer(birth, random);
      case 'inventory':
        return makeStock(`${RULES.inventory.keyPrefix}${birth.number}`, wine, random);
      case 'wine-clubs':
        return makeClub(birth.number, place, random);
      case 'wine-club-members':
        return makeMember(birth, random);
      case 'products':
        return makeProduct(birth, wine, random);
    }
  }

  /** Whether a record has the shape that {@link alter} relies on. */
  isRecognized(resource: Resource, record: JsonValue): record is JsonObject {
    if (resource === 'orders') return isOrder(record);
    return isObject(record) && (resource !== 'products' || Array.isArray(record.variants));
  }

  /** Makes a random change to a record. An order usually advances by one step, or else is edited. `at`: time of the change, ISO 8601. */
  alter(resource: Resource, record: JsonObject, at: string, random: Random): void {
    switch (resource) {
      case 'orders': {
        const order = record as OrderRecord; // checked by `isRecognized`
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

  /**
   * Makes random changes to a record that becomes a template: a random number, up to 30 hours apart, and sometimes one more, a month or
   * more later.
   */
  #live(resource: Resource, record: JsonObject, random: Random): void {
    let at = PLACEHOLDERS.createdAt;
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

/** The customers and templates of one account, taken from the shared data in {@link Trade} or generated from the account's seed. */
export class Winery {
  readonly #seed: number;
  readonly #customers: number;
  readonly #trade: Trade;
  /**
   * Index of the account's first customer among the people that all accounts share; 0 for the first account, which has the sandbox's
   * seed.
   */
  readonly #firstPerson: number;

  constructor(seed: number, customers: number, trade: Trade) {
    this.#seed = seed;
    this.#customers = customers || PEOPLE;
    this.#trade = trade;
    this.#firstPerson = Math.floor(trade.apart(seed) * PEOPLE);
  }

  /** Returns the index of the customer to whom a record belongs. For a customer record this is its own index. */
  customerOf(resource: Resource, id: number): number {
    return resource === 'customers' ? id : mix(this.#seed ^ 0xc057, id) % this.#customers;
  }

  personAt(customer: number): PersonBytes {
    return this.#trade.personAt(this.#personOf(customer));
  }

  buyerAt(customer: number): Buyer {
    return makeBuyer(this.#trade.seed, this.#personOf(customer));
  }

  templates(resource: Resource): readonly Template[] {
    // Records without dates would be identical in every account if their templates were shared.
    return RULES[resource].dated
      ? this.#trade.sharedTemplates(resource)
      : this.#trade.templates(resource, this.#seed);
  }

  #personOf(customer: number): number {
    return (this.#firstPerson + (customer % Math.min(this.#customers, PEOPLE))) % PEOPLE;
  }
}
