import type { JsonValue } from '../json/json.ts';

/**
 * The longs that avsc reads as they were written. It counts in doubles: it takes one less than the safe
 * integers, and gets wrong, without a word, what is below -2^52 (of which Avro writes `-2n - 1`).
 */
const MAX_LONG = Number.MAX_SAFE_INTEGER - 1;
const MIN_LONG = -(2 ** 52);

export const isInteger = (value: JsonValue, least: number, most: number): boolean =>
  Number.isInteger(value) &&
  (value as number) >= least &&
  (value as number) <= most &&
  !Object.is(value, -0);

/** Whether a field of type `long` holds the value. */
export const isLong = (value: JsonValue): boolean => isInteger(value, MIN_LONG, MAX_LONG);

/** Whether a field of type `double` holds the value. */
export const isDouble = (value: JsonValue): boolean =>
  Number.isFinite(value) && !Object.is(value, -0);
