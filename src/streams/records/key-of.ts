import { isJsonObject, JsonNumber } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import { joinKey } from '../../schemas/events/record-key.ts';

/** Longer ones the image store can't hold. */
const MAX_KEY_BYTES = 1_000;

/** Reads a record's key: its text, or undefined when there is none. */
export type KeyOf = (record: JsonValue) => string | undefined;

/** The key made of one or more fields: integers and non-empty texts, as text; several are joined by `|`. At most 1,000 bytes of UTF-8. */
export function keyOfFields(fields: readonly string[]): KeyOf {
  return (record) => {
    if (!isJsonObject(record)) return undefined;
    const parts: string[] = [];
    for (const field of fields) {
      const part = Object.hasOwn(record, field) ? keyPart(record[field]) : undefined;
      if (part === undefined) return undefined;
      parts.push(part);
    }
    const key = joinKey(parts);
    return Buffer.byteLength(key) <= MAX_KEY_BYTES ? key : undefined;
  };
}

function keyPart(value: JsonValue | undefined): string | undefined {
  // Half a surrogate pair has no UTF-8: two such keys would be one in Kafka.
  if (typeof value === 'string') return value !== '' && value.isWellFormed() ? value : undefined;
  // A number that is not held exactly is a JsonNumber, so that its text is what was sent.
  if (typeof value !== 'number' && !(value instanceof JsonNumber)) return undefined;
  const text = String(value);
  return /^-?\d+$/.test(text) ? text : undefined;
}
