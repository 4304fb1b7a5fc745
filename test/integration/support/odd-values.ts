import type { Chance } from '../../support/chance.ts';
import { SentNumber } from './json-model.ts';
import type { Json } from './json-model.ts';

/** Makes a value. */
export type Maker = (chance: Chance) => Json;

/** Names that trip up who is careless with pointers, Avro names or prototypes. */
export const ODD_NAMES = [
  ...['', ' ', 'a.b', 'a b', 'a_b', 'A_B', 'a/b', '/', '~', '~1', '~0~1', '2nd', '0', '_', '-'],
  ...['été', 'ete', '名', '姓', '😀', '"', '\\', '\u0000', '\u2028', 'x'.repeat(201)],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'nulls', 'unmapped', 'Value'],
] as const;

/** Avro can't spell them at all. */
export const HALF_NAMES = ['\ud800', 'a\udfffb', '\udc00\ud800'] as const;

const HELD_NUMBERS = [
  ...['0', '1', '-1', '1.0', '1.50', '-2.500', '1E5', '1e+2', '12e-1', '0.0', '0e7', '0.1', '1e3'],
  ...['2147483648', '-2147483649', '9007199254740991', '-9007199254740991', '9007199254740992'],
  ...['-4503599627370497', '1e21', '1e-7', '5e-324', '1.7976931348623157e308', '123456.789'],
  ...['0.30000000000000004', '100000000000000000000', '1234567890123456.0', '0.00001'],
] as const;

const UNHELD_NUMBERS = [
  ...['-0', '-0.0', '-0e10', '9007199254740993', '-9007199254740993', '9223372036854775807'],
  ...['-9223372036854775808', '18446744073709551615', '1e400', '-1E+400', '1e-400', '2e99999'],
  ...['0.1234567890123456789', '3.14159265358979323846264338327950288', '1.00000000000000000001'],
  ...['922337203685477.5807', '12345678901234.5678', `1${'0'.repeat(40)}1`, '0.10000000000000001'],
] as const;

/** Like dates and times, but for most of them a typed field can't say all that they say. */
const TIMES = [
  ...['2024-05-01T12:00:00.000Z', '2024-05-01T12:00:00Z', '2024-05-01T12:00Z', '2024-02-29T00:00Z'],
  ...['2024-05-01T12:00:00.5Z', '2024-05-01T12:00:00.12+00:00', '2024-05-01T12:00:00.1234Z'],
  ...['2024-05-01T12:00:00.12345+02:00', '2024-05-01T12:00:00.123456Z', '0000-01-01T00:00:00.000Z'],
  ...['2024-05-01T12:00:00.1234567-0330', '2024-05-01T12:00:00.12345678', '2024-05-01 12:00:00'],
  ...['2024-05-01T12:00:00.123456789Z', '2024-05-01T12:00:00-00:00', '2024-05-01T12:00:00+05:45'],
  ...['2024-05-01T12:00:00+14', '2024-05-01T12:00:00+99:99', '2024-05-01t12:00:00z', '2024-05-01'],
  ...['2023-02-29T00:00:00Z', '2024-12-31T24:00:00Z', '2024-06-30T23:59:60Z', '1969-12-31T23:59Z'],
  ...['2024-13-01T00:00:00.000Z', '2024-05-01T12:00:00.000 Z', '20240501T120000Z', '1715000000'],
  ...['2024-05-01T12:00:00,5Z', '2024-05-01T12:00:00.Z', '2024-W18-3', '2024-05-01T12', 'today'],
] as const;

const DATES = ['1980-02-29', '2000-02-29', '1999-12-31', '0000-01-01', '9999-12-31', '1969-07-20'];
const ODD_DATES = [
  ...['1981-02-29', '1900-02-29', '1980-2-9', '29.02.1980', '1980-02-29T00:00:00Z', '1980-00-10'],
  ...['', ' 1980-02-29', '1980-02-29 ', '-0001-01-01', '1980-02', '١٩٨٠-02-29'],
];

const TEXTS = [
  ...[
    '',
    ' ',
    'Estate Pinot Noir',
    'Gewürztraminer',
    'シャルドネ',
    '🍷🍇',
    'true',
    'FALSE',
    'null',
  ],
  ...[
    '12',
    '1e5',
    '{"a":1}',
    '[',
    'a\nb\tc',
    '\u0000',
    '\u2028',
    '"quoted"',
    'back\\slash',
    '\ufeff',
  ],
] as const;

const HALF_TEXTS = ['\ud800', 'ab\udc00', '\udfff\ud800', '🍷'.slice(1)] as const;

const digits = (chance: Chance, count: number): string =>
  Array.from({ length: count }, () => chance.below(10)).join('');

export const number = (text: string | number): SentNumber => new SentNumber(String(text));

export const text: Maker = (chance) =>
  chance.is(0.2) ? chance.pick(TEXTS) : `${chance.pick(TEXTS)} ${chance.below(1e6)}`;
export const integer: Maker = (chance) => number(chance.below(2_000) - 500);
export const price: Maker = (chance) =>
  number(`${chance.below(900)}.${chance.pick(['0', '5', '95', '10', '125', '0625'])}`);
export const flag: Maker = (chance) => chance.is(0.5);
export const flagText: Maker = (chance) => chance.pick(['true', 'false', 'TRUE', '0', 'yes']);
export const date: Maker = (chance) => chance.pick(DATES);
export const oddDate: Maker = (chance) => chance.pick(ODD_DATES);
/** The one form of an instant that is a type of its own. */
export const instant: Maker = (chance) =>
  new Date(chance.below(1.7e9) * 1_000 + chance.below(1_000)).toISOString();

export const time: Maker = (chance) => (chance.is(0.3) ? instant(chance) : chance.pick(TIMES));

/** As 64-bit ids are: most beyond 2^53. */
export const longId: Maker = (chance) =>
  chance.is(0.15) ? integer(chance) : number(`9${digits(chance, 18)}`);

export const anyNumber: Maker = (chance) => {
  const kind = chance.below(8);
  if (kind < 3) return number(chance.pick(HELD_NUMBERS));
  if (kind < 6) return number(chance.pick(UNHELD_NUMBERS));
  const sign = chance.is(0.3) ? '-' : '';
  const whole = `${1 + chance.below(9)}${digits(chance, chance.below(24))}`;
  return number(
    kind === 6 ? `${sign}${whole}` : `${sign}${whole}.${digits(chance, 1 + chance.below(20))}`,
  );
};

/** A value that suits no field: a leaf of any kind. */
export const oddLeaf: Maker = (chance) => {
  switch (chance.below(9)) {
    case 0:
      return chance.is(0.5);
    case 1:
      return chance.pick(HALF_TEXTS);
    case 2:
      return chance.pick(TIMES);
    case 3:
      return oddDate(chance);
    case 4:
      return chance.is(0.5) ? [] : new Map();
    case 5:
    case 6:
      return chance.pick(TEXTS);
    default:
      return anyNumber(chance);
  }
};

/** Lists and objects of oddities, of any names. */
export const oddTree: Maker = (chance) => treeOf(chance, 3);

function treeOf(chance: Chance, levels: number): Json {
  const kind = levels === 0 ? 0 : chance.below(4);
  if (kind < 2) return chance.is(0.1) ? null : oddLeaf(chance);
  const parts = Array.from({ length: chance.below(4) }, () => treeOf(chance, levels - 1));
  if (kind === 2) return parts;
  return new Map(parts.map((part) => [chance.pick(chance.is(0.1) ? HALF_NAMES : ODD_NAMES), part]));
}

/** So deep that each level of it can't be a type of its own; the names on the way are the same. */
export function tower(levels: number, leaf: Json): Json {
  let value = leaf;
  for (let level = levels; level > 0; level--) {
    const within = new Map<string, Json>([['part', value]]);
    if (level % 4 === 0) within.set('level', number(level));
    value = level % 3 === 0 ? [within, null] : within;
  }
  return value;
}
