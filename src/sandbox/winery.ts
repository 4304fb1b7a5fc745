import type { Buyer } from './new-order.ts';
import { mix } from './random.ts';
import { RULES } from './resources.ts';
import type { Resource } from './resources.ts';
import type { PersonBytes, Template } from './template.ts';
import { PEOPLE } from './trade.ts';
import type { Trade } from './trade.ts';

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
