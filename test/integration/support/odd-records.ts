import type { Resource } from '../../../src/sandbox/index.ts';
import { Chance } from '../../support/chance.ts';
import { SentNumber } from './json-model.ts';
import type { Json, JsonMembers } from './json-model.ts';
import { field, listOf, mapOf, membersOf, objectOf, part } from './odd-fields.ts';
import type { Field } from './odd-fields.ts';
import { ORDER_FIELDS } from './odd-orders.ts';
import {
  anyNumber,
  date,
  flag,
  flagText,
  HALF_NAMES,
  instant,
  integer,
  longId,
  number,
  oddDate,
  ODD_NAMES,
  oddTree,
  price,
  text,
  time,
  tower,
} from './odd-values.ts';
import type { Maker } from './odd-values.ts';

/** A record as it is sent, and the key that its topic must know it by. */
export interface OddRecord {
  readonly key: string;
  readonly record: JsonMembers;
}

/** From this record on things come that none before has had. */
const LATE = 5_000;

const MIXED: readonly Maker[] = [
  ...[text, price, flag, time, listOf(text), listOf(anyNumber)],
  objectOf(field('kind', text), field('of', anyNumber)),
];

/** What a name holds, more often than not. */
const MAKERS: readonly Maker[] = [text, anyNumber, flag, time, longId, price, flagText, date];

/** Names of any spelling, rare enough to make no schema of every page. */
const strangers = (turn: number, names: readonly string[], share: number): Field[] =>
  names.map((name, at) => field(name, MAKERS[(at + turn) % MAKERS.length]!, { share }));

const oddlyNamed = (turn: number): Field[] => strangers(turn, ODD_NAMES, 0.03);

const GEO = objectOf(
  field('lat', anyNumber),
  field('lng', price),
  ...['2nd', 'a.b', '__proto__', 'nulls'].map((name) => field(name, text, { share: 0.1 })),
);

const ITEM = objectOf(
  field('sku', text),
  field('quantity', integer),
  field('at', time, { share: 0.4 }),
  field('a/b', longId, { share: 0.1 }),
  field('constructor', anyNumber, { share: 0.1 }),
);

/** What undescribed records of every kind are made of; of each something other is odd. */
const COMMON: readonly Field[] = [
  field('name', text),
  field('notes', text, { share: 0.5, odd: (chance) => tower(60, oddTree(chance)) }),
  field('created_at', instant, { oddFrom: LATE, odd: time }),
  field('updated_at', instant, { oddFrom: LATE }),
  field('birthday', date, { oddFrom: LATE, odd: oddDate }),
  field('seen', time),
  field('balance', price, { oddFrom: LATE, odd: anyNumber }),
  field('rating', anyNumber),
  field('legacy_id', longId),
  field('active', flag, { odd: flagText }),
  field('opted_in', flagText, { odd: flag }),
  field('mixed', (chance) => chance.pick(MIXED)(chance)),
  part('tags', listOf(text)),
  part('scores', listOf(listOf(anyNumber), 2), { share: 0.3 }),
  part('address', objectOf(field('city', text), field('zip', text), part('geo', GEO))),
  part('items', listOf(ITEM)),
  part('grid', listOf(listOf(ITEM, 2), 2), { share: 0.3 }),
  part('empty', (chance) => (chance.is(0.5) ? [] : new Map()), { share: 0.2 }),
  part('nest', (chance) => tower(1 + chance.below(60), anyNumber(chance)), { share: 0.05 }),
  field('attributes', mapOf('attribute ', 4_000), { share: 0.3 }),
  part('loyalty', objectOf(field('since', instant), field('points', integer)), { from: LATE }),
  field('late', (chance) => chance.pick(MIXED)(chance), { from: LATE + 2_000, share: 0.1 }),
];

/** More names at the root than a schema has fields. */
const DISGUISED_NAMES = 2_000;

const FIELDS: Readonly<Record<Resource, readonly Field[]>> = {
  orders: [...ORDER_FIELDS, ...oddlyNamed(0)],
  customers: [...COMMON, ...oddlyNamed(1)],
  inventory: [...COMMON, ...oddlyNamed(2)],
  'wine-clubs': [...COMMON, ...oddlyNamed(3)],
  'wine-club-members': [...COMMON, ...oddlyNamed(4)],
  products: [...COMMON, ...oddlyNamed(5)],
};

/** By what name the record is known, and as what. Texts and numbers, of any size. */
const KEYS: Readonly<Record<Resource, (place: number) => readonly [string, Json]>> = {
  orders: (place) => [
    'order_number',
    number(place % 50 === 3 ? `${100_001 + place}.0` : 100_001 + place),
  ],
  customers: (place) => ['id', `client n° ${place} | \\ 😀`],
  inventory: (place) => ['sku', `CS/${place}~1 "é"`],
  'wine-clubs': (place) => ['id', String(place).padStart(8, '0')],
  'wine-club-members': (place) => ['id', place % 2 ? number(place) : `m${place}`],
  products: (place) => [
    'id',
    number(String(place % 3 ? 9_007_199_254_740_993n + 7n * BigInt(place) : BigInt(place))),
  ],
};

/** The `place`-th record of a list, from 0: always the same one. */
export function oddRecord(resource: Resource, place: number): OddRecord {
  const chance = new Chance(place, 'records', resource);
  const [name, id] = KEYS[resource](place);
  const record = new Map(membersOf(FIELDS[resource], place, chance)).set(name, id);
  if (chance.is(0.002)) record.set(chance.pick(HALF_NAMES), oddTree(chance));
  if (place % 2_500 === 7) record.set('notes', `${place} bottles\n🍷 `.repeat(16_000)); // 200 kB and more
  if (resource === 'inventory') {
    for (let n = 0; n < 3; n++) {
      record.set(`attr-${chance.below(DISGUISED_NAMES)}`, chance.pick(MAKERS)(chance));
    }
  }
  const key = id instanceof SentNumber ? id.text.replace('.0', '') : (id as string);
  return { key, record };
}
