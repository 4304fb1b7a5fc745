import type { Random } from './random.ts';
import type { JsonObject } from './resources.ts';

const TAGS = ['newsletter', 'vip', 'local', 'Großkunde', 'gift-giver'];

/** A customer. The fields are made up: the API's description shows none. */
export function makeCustomer(
  basics: { number: number; createdAt: string; updatedAt: string },
  contact: object,
  random: Random,
): JsonObject {
  return {
    id: basics.number,
    ...contact,
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

/** What happens to a customer, at random; the person stays who it is. */
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
