import { isJsonObject, JsonNumber } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';

/** Which field tells the elements of an array apart, by the array's name in its record. */
export type Identities = Readonly<Record<string, string>>;

/**
 * The elements of an array by their identity, in order: the text of `field`, with `#2`, `#3` and so
 * on where several share it; an element without it is known by its place alone (`#1` is the first).
 */
export function byIdentity(
  array: readonly JsonValue[],
  field: string,
): ReadonlyMap<string, JsonValue> {
  const elements = new Map<string, JsonValue>();
  const counts = new Map<string, number>();
  array.forEach((element, place) => {
    const text = textOf(isJsonObject(element) ? element[field] : undefined) ?? `#${place + 1}`;
    let count = counts.get(text) ?? 0;
    let id: string;
    do id = ++count === 1 ? text : `${text}#${count}`;
    while (elements.has(id)); // an identity may itself look like a count or a place
    counts.set(text, count);
    elements.set(id, element);
  });
  return elements;
}

function textOf(value: JsonValue | undefined): string | undefined {
  if (value instanceof JsonNumber) return value.text;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}
