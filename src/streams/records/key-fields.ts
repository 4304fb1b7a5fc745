import { isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import { keyRecords } from './records.ts';
import { keyOfFields } from './key-of.ts';

/** What the records of a page say of the fields that could be their key. */
export type KeyChoice =
  /** The first candidate that the records have, with a value of its own for each that differs. */
  | { readonly fields: readonly string[] }
  /** None is; the names of all fields seen, sorted, so that a person can choose. */
  | { readonly fields: undefined; readonly seen: readonly string[] };

/** Of a page, so many records may lack their key: they go to dead letters, and the rest goes on. */
const A_FEW = 1 / 10;
const MOST = 1 / 5;

/**
 * Chooses the key of records that nobody has described: the first of `candidates` (each one field,
 * or several together) that the objects of the page have, all but a tenth of them, and that tells
 * them apart, save those that say the same. If there is none, the first that a fifth of them may
 * lack. A page without objects says nothing: undefined.
 */
export function chooseKeyFields(
  data: readonly JsonValue[],
  candidates: readonly (readonly string[])[],
): KeyChoice | undefined {
  const records = data.filter(isJsonObject);
  if (records.length === 0) return undefined;
  const fits = (most: number) =>
    candidates.find((candidate) => {
      const { rejected } = keyRecords(records, keyOfFields(candidate));
      return rejected.length <= most && rejected.every(({ reason }) => reason === 'no-key');
    });
  const fields = fits(records.length * A_FEW) ?? fits(records.length * MOST);
  if (fields) return { fields };
  return { fields: undefined, seen: fieldNames(records) };
}

/** The names of all fields that these records have, sorted. */
export function fieldNames(records: readonly JsonObject[]): string[] {
  return [...new Set(records.flatMap(Object.keys))].sort();
}
