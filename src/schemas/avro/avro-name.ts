// Derives valid Avro names from names in JSON.

import { createHash } from 'node:crypto';
import type { FieldSchema, RecordSchema } from './avro-schema.ts';

const AVRO_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Maximum length of an Avro name derived from an invalid JSON name, without the hash suffix of a taken name. Valid names may be longer. */
const MAX_LENGTH = 100;

/** Number of hex digits of the hash that is appended to an Avro name that is already taken. */
const HASH_LENGTH = 8;

export function isAvroName(text: string): boolean {
  return AVRO_NAME.test(text);
}

/**
 * Returns a valid Avro name for any text, such as a name in JSON. A valid text is returned unchanged. In any other text the accents are
 * removed, and `_` replaces each character that Avro does not allow (`Prix été (€)` becomes `Prix_ete____`, `2nd` becomes `_2nd`). If
 * the name is taken, a hash is appended. So the result depends on the text and on whether the name was taken, not on the number of similar
 * names before it.
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
    free = `${name}_${hash(round === 0 ? hashed : `${round} ${hashed}`)}`;
  }
}

/** Derives the Avro name of a nested record type from the names of the fields that lead to it: `ShippingAddressGeo`. */
export function recordName(path: readonly string[], isTaken: (name: string) => boolean): string {
  const parts = path.flatMap((name) => name.split('_'));
  const joined = parts.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
  return avroName(joined, isTaken, path.join('.'));
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

/** Names of a schema's record types, as {@link distinctName} returns them. */
export type RecordNames = Set<string>;

/** Returns a record type's name without namespace and in lower case: generated Java classes need distinct file names. */
export function distinctName({ name }: Pick<RecordSchema, 'name'>): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

/**
 * Whether every JavaScript object inherits a property of this name, such as `toString`. If a field of such a name were absent from an
 * object, avsc would read the inherited property.
 */
export function isInherited(name: string): boolean {
  return name in Object.prototype;
}

function respelled(text: string): string {
  const plain = text.slice(0, MAX_LENGTH).normalize('NFKD').replace(/\p{M}/gu, '');
  const name = plain.replace(/[^A-Za-z0-9_]/gu, '_').slice(0, MAX_LENGTH);
  return isAvroName(name) ? name : `_${name}`;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH);
}
