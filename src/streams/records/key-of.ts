import { getOwn, isJsonObject, JsonNumber } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import { joinKey } from '../../schemas/events/record-key.ts';

/** Maximum length of a key, in bytes of UTF-8. The image store cannot hold longer keys. */
const MAX_KEY_BYTES = 1_000;

/** Returns the key of a record as text; undefined if the record has no valid key. */
export type KeyOf = (record: JsonValue) => string | undefined;

/**
 * Creates the function that returns the key of a record, made of the values of one or more fields. Several values are joined by `|` (with
 * `\` before each `|` or `\` within a value). A record has no key if a value is not an integer or a non-empty string, or if the key is
 * longer than 1,000 bytes of UTF-8.
 */
export function keyOfFields(fields: readonly string[]): KeyOf {
  return (record) => {
    if (!isJsonObject(record)) return undefined;
    const parts = fields.map((field) => keyPart(getOwn(record, field)));
    if (!parts.every((part) => part !== undefined)) return undefined;
    const key = joinKey(parts);
    return Buffer.byteLength(key) <= MAX_KEY_BYTES ? key : undefined;
  };
}

function keyPart(value: JsonValue | undefined): string | undefined {
  // A lone surrogate has no UTF-8 encoding: two such keys would be the same in Kafka.
  if (typeof value === 'string') return value !== '' && value.isWellFormed() ? value : undefined;
  // A number that a double cannot represent exactly is a JsonNumber, whose text is what was received.
  if (typeof value !== 'number' && !(value instanceof JsonNumber)) return undefined;
  const text = String(value);
  return /^-?\d+$/.test(text) ? text : undefined;
}
