import { Random } from './random.ts';
import type { JsonObject } from './resources.ts';
import type { PersonBytes } from './template.ts';

/** Fields of an order that describe the buyer. In a `Template` they are placeholders, which are replaced when a record is written. */
export interface Buyer {
  /** Name, birth date, phone and email. */
  readonly contact: object;
  /** Recipient and address of the buyer's orders: the buyer, or another person if the orders are gifts. */
  readonly shipping: object;
  readonly billing: object;
}

/** Properties of a new record, or their placeholders in a `Template`. Times are by the server's clock. */
export interface NewRecordBasics {
  readonly number: number;
  /** Number in the key of the customer to whom the record belongs. */
  readonly customer: number;
  /** Time of creation, in epoch ms. */
  readonly at: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly buyer: Buyer;
}

const FIRST =
  'Anna Ben Carla David Elena Frank Grace Henry Iris Jack Karen Luis Maya Noah Olivia Peter Quinn Rosa Sam Tara Uma Victor Wendy Zoë José Søren Łukasz Chloé Jürgen Ольга 陽子 Siobhán Thị-Hạnh Ḥasan'.split(
    ' ',
  );
const LAST =
  'Smith Johnson Nguyễn García Müller Brown Rossi Kowalska Tanaka Lee Martin Dubois O’Brien Silva Jensen Papadopoulos Novák Walker Iversen Çelik Okafor Ivanova 田中 Peña Van-der-Berg Whitfield Baptiste Armstrong Lindqvist Fontaine'.split(
    ' ',
  );
const STREETS =
  'Vineyard Oak Main Silverado Cellar Maple Crush Harvest Sonoma Riverbend Orchard St.-Émilion'.split(
    ' ',
  );
const KINDS = ['St', 'Ave', 'Rd', 'Ln', 'Way', 'Trl'] as const;
const TOWNS = [
  ['Napa', 'CA', 945],
  ['Sonoma', 'CA', 954],
  ['San José', 'CA', 951],
  ['Paso Robles', 'CA', 934],
  ['Walla Walla', 'WA', 993],
  ['Portland', 'OR', 972],
  ['Austin', 'TX', 787],
  ['New York', 'NY', 100],
  ['Cañon City', 'CO', 812],
  ['Miami', 'FL', 331],
] as const;

/** Creates a buyer; the same seed and number give the same buyer. */
export function makeBuyer(seed: number, number: number): Buyer {
  const isGift = new Random(seed, number).chance(0.12);
  return {
    contact: makeContact(seed, number),
    shipping: addressFields('shipping', isGift ? seed + 1 : seed, number),
    billing: addressFields('billing', seed, number),
  };
}

function addressFields(kind: 'shipping' | 'billing', seed: number, number: number): JsonObject {
  const contact = makeContact(seed, number);
  const address = makeAddress(seed, number);
  return {
    [`${kind}_first_name`]: contact.first_name,
    [`${kind}_last_name`]: contact.last_name,
    [`${kind}_birth_date`]: contact.date_of_birth,
    [`${kind}_phone`]: contact.phone,
    [`${kind}_address_line1`]: address.line1,
    ...(address.line2 === null ? {} : { [`${kind}_address_line2`]: address.line2 }),
    [`${kind}_address_city`]: address.city,
    [`${kind}_address_state`]: address.state,
    [`${kind}_address_zip_code`]: address.zip_code,
  };
}

/** Returns a buyer's fields as JSON bytes, to be inserted at the placeholders of a `Template`. */
export function personBytes({ contact, shipping, billing }: Buyer): PersonBytes {
  const fields = (object: object) => Buffer.from(JSON.stringify(object).slice(1, -1));
  return { contact: fields(contact), shipping: fields(shipping), billing: fields(billing) };
}

function makeContact(seed: number, number: number) {
  const random = new Random(seed ^ 0x70e09, number);
  const first = random.pick(FIRST);
  const last = random.pick(LAST);
  const plain = (name: string) => name.normalize('NFD').replace(/[^A-Za-z]/g, '');
  const mailbox = [plain(first), plain(last), String(number)].filter((part) => part !== '');
  const two = (value: number) => String(value).padStart(2, '0');
  const birth = `${random.between(1935, 2003)}-${two(random.between(1, 12))}-${two(random.between(1, 28))}`;
  const phone = `+1 ${random.between(201, 989)}-555-${String(random.below(10_000)).padStart(4, '0')}`;
  return {
    first_name: first,
    last_name: last,
    date_of_birth: random.chance(0.08) ? null : birth,
    phone: random.chance(0.05) ? null : phone,
    email: `${mailbox.join('.').toLowerCase()}@example.com`,
  };
}

function makeAddress(seed: number, number: number) {
  const random = new Random(seed ^ 0xadd7e55, number);
  const [city, state, zip] = random.pick(TOWNS);
  return {
    line1: `${random.between(1, 9_999)} ${random.pick(STREETS)} ${random.pick(KINDS)}`,
    line2: random.pick([null, null, '', '', '', `Apt ${random.between(1, 60)}`]),
    city,
    state,
    zip_code: `${zip}${String(random.between(1, 99)).padStart(2, '0')}`,
  };
}
