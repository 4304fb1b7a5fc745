// Derives valid Avro names from names in JSON.

import { createHash } from 'node:crypto';
import type { FieldSchema } from './avro-schema.ts';

/**
 * Maximum length, in characters, of an Avro name made from a JSON name that is not valid in Avro. A leading `_` and a hash may be added to
 * this length. JSON names that are valid in Avro may be longer.
 */
const MAX_LENGTH = 100;

/** Number of hex digits of the hash that is appended to an Avro name that is already taken. */
const HASH_LENGTH = 8;

export function isAvroName(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}

/**
 * Returns a valid Avro name for any text, such as a name in JSON. If the text is not valid, accents are removed, and `_` replaces each
 * character that Avro does not allow: `Prix été (€)` becomes `Prix_ete____`. If the result is taken, a hash is appended.
 *
 * @param hashed Input of the hash: distinguishes this text from other texts with the same Avro name.
 */
export function avroName(
  text: string,
  isTaken: (name: string) => boolean,
  hashed: string = text,
): string {
  const name = isAvroName(text) ? text : respelled(text);
  for (let round = 0, free = name; ; round++) {
    if (!isTaken(free)) return free;
    // A counter would depend on how many similar names came before.
    const hash = createHash('sha256').update(round === 0 ? hashed : `${round} ${hashed}`);
    free = `${name}_${hash.digest('hex').slice(0, HASH_LENGTH)}`;
  }
}

/**
 * Returns a free Avro name for a nested record type, and adds it to `recordNames`.
 *
 * @param path Names of the fields that lead to the record type. They form the name: `ShippingAddressGeo`.
 * @param recordNames Names of the schema's record types, as {@link distinctName} returns them.
 * @param wanted Name that is preferred if it is free.
 */
export function recordName(
  path: readonly string[],
  recordNames: Set<string>,
  wanted?: string,
): string {
  const isTaken = (name: string) => recordNames.has(distinctName(name));
  const words = path.flatMap((name) => name.split('_'));
  const joined = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
  const isFree = wanted !== undefined && !isTaken(wanted);
  const name = isFree ? wanted : avroName(joined, isTaken, path.join('.'));
  recordNames.add(distinctName(name));
  return name;
}

/** Returns the Avro namespace of a list's schemas. `api` is the namespace of the API. Hyphens of the list's name become underscores. */
export function listNamespace(list: string, api = 'cellarstream'): string {
  return `${api}.${list.replaceAll('-', '_')}`;
}

/** The record type to which fields are added, with its location in the schema. */
export interface FieldParent {
  /** Avro names of the fields that lead to the record type from the root of the schema. */
  readonly path: readonly string[];
  readonly fields: readonly FieldSchema[];
}

/**
 * Returns the names that a new field of a record type can't have: those of its fields, of properties that every JavaScript object inherits,
 * such as `toString`, and, at the root of the schema, `nulls` and `unmapped`.
 */
export function takenNames({ path, fields }: FieldParent): Set<string> {
  const taken = [
    // If an object lacked a field of that name, avsc would read the inherited property.
    ...Object.getOwnPropertyNames(Object.prototype),
    ...fields.map(({ name }) => name),
  ];
  return new Set(path.length === 0 ? [...taken, 'nulls', 'unmapped'] : taken);
}

/** Returns a record type's name without namespace and in lower case: generated Java classes need distinct file names. */
export function distinctName(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

function respelled(text: string): string {
  const plain = text.slice(0, MAX_LENGTH).normalize('NFKD').replace(/\p{M}/gu, '');
  const name = plain.replace(/[^A-Za-z0-9_]/gu, '_').slice(0, MAX_LENGTH);
  return isAvroName(name) ? name : `_${name}`;
}
