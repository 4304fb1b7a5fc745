// Names in Avro for names in JSON.

import { createHash } from 'node:crypto';
import type { FieldSchema, RecordSchema } from './avro-schema.ts';

const AVRO_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Longest name that is made; one that needn't be made stays as it is. */
const MAX_LENGTH = 100;

/** Hex digits of the hash that tells apart names of one spelling. */
const HASH_LENGTH = 8;

/** Whether the text is a name in Avro's sense. */
export function isAvroName(text: string): boolean {
  return AVRO_NAME.test(text);
}

/**
 * A name that Avro allows for any text: the text itself where it is one, else the text with its
 * accents gone and `_` for each other character that Avro has no place for (`Prix été (€)` becomes
 * `Prix_ete____`, `2nd` becomes `_2nd`). One that is taken gets a hash behind it, so that what a
 * text becomes hangs on itself and on whether it came first, not on how many came before.
 *
 * @param hashed What the hash is made of: what tells this text from others that are spelled so.
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

/** The name of a record by the names of the fields that lead to it: `ShippingAddressGeo`. */
export function recordName(path: readonly string[], isTaken: (name: string) => boolean): string {
  const words = path.flatMap((name) => name.split('_'));
  const joined = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
  return avroName(joined, isTaken, path.join('.'));
}

/** Where fields are added, in the schema and in the record there. */
export interface FieldPlace {
  /** The names in Avro of the fields that lead to the record. */
  readonly path: readonly string[];
  /** The fields that it has. */
  readonly fields: readonly FieldSchema[];
}

/** Names in the schema that no other record may have, as {@link distinctName} has them. */
export type RecordNames = Set<string>;

/** Names are distinct whatever their namespace or case: in Java a class has a file of its name. */
export function distinctName({ name }: Pick<RecordSchema, 'name'>): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

/** avsc looks fields up by name in plain objects: of `toString` it finds what every object has. */
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
