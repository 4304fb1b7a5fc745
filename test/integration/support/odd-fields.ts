import type { Chance } from '../../support/chance.ts';
import { HALF_NAMES, number, oddLeaf, oddTree, text } from './odd-values.ts';
import type { Maker } from './odd-values.ts';
import type { Json, JsonMembers } from './json-model.ts';

/** A member that the records of a resource may have. */
export interface Field {
  readonly name: string;
  readonly make: Maker;
  /** How many records have it, of 1. */
  readonly share: number;
  /** What comes instead, now and then. */
  readonly odd: Maker;
  /** The first record that may have it. */
  readonly from: number;
  /** The first record in which it may be null or odd. */
  readonly oddFrom: number;
}

const NULL_SHARE = 0.06;
const ODD_SHARE = 0.04;

export function field(name: string, make: Maker, more: Partial<Field> = {}): Field {
  return { name, make, share: 0.85, odd: oddTree, from: 0, oddFrom: 0, ...more };
}

/** The members of one record, the `place`-th of its list. */
export function membersOf(fields: readonly Field[], place: number, chance: Chance): JsonMembers {
  const members = new Map<string, Json>();
  for (const { name, make, share, odd, from, oddFrom } of fields) {
    if (place < from || !chance.is(share)) continue;
    const kind = place < oddFrom ? 1 : chance.next();
    if (kind < NULL_SHARE) members.set(name, null);
    else members.set(name, kind < NULL_SHARE + ODD_SHARE ? odd(chance) : make(chance));
  }
  return members;
}

/** An object of these fields; rarely with a name that Avro can't spell. */
export const objectOf =
  (...fields: readonly Field[]): Maker =>
  (chance) => {
    const members = new Map(membersOf(fields, 0, chance));
    if (chance.is(0.004)) members.set(chance.pick(HALF_NAMES), oddTree(chance));
    return members;
  };

/** A list of a few, with null and leaves of any kind between them. */
export const listOf =
  (make: Maker, most = 3): Maker =>
  (chance) =>
    Array.from({ length: chance.below(most + 1) }, () => {
      const kind = chance.next();
      return kind < 0.04 ? null : kind < 0.08 ? oddLeaf(chance) : make(chance);
    });

/** A field that holds objects, or lists of them. What is odd there is no object of other names. */
export const part = (name: string, make: Maker, more: Partial<Field> = {}): Field =>
  field(name, make, { odd: oddPart, ...more });

const oddPart: Maker = (chance) => {
  const leaf = () => oddLeaf(chance);
  return chance.is(0.6) ? leaf() : [[leaf(), [leaf()]], null, leaf()];
};

/** An object that is a map: its names are data. */
export const mapOf =
  (prefix: string, names: number): Maker =>
  (chance) => {
    const entries = Array.from({ length: 1 + chance.below(3) }, () => chance.below(names));
    return new Map(
      entries.map((name) => [`${prefix}${name}`, chance.is(0.7) ? number(name) : text(chance)]),
    );
  };
