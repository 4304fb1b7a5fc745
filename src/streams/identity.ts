import type { JsonValue } from '../schemas/json.ts';
import { isObject } from './records.ts';

/** Which field tells the elements of an array apart, by the array's name in its record. */
export type Identities = Readonly<Record<string, string>>;

/** The arrays of an order whose elements are known by more than their place. */
export const ORDER_IDENTITIES: Identities = {
  fulfillment_info: 'fulfillment_id',
  order_edit: 'created_at',
};

/**
 * The elements of an array by their identity, in order: the text of `field`, with `#2`, `#3` and so
 * on where several share it; an element without it is known by its place alone (`#1` is the first).
 */
export function byIdentity(
  array: readonly JsonValue[],
  field: string,
): ReadonlyMap<string, JsonValue> {
  const elements = new Map<string, JsonValue>();
  const shared = new Map<string, number>();
  array.forEach((element, place) => {
    const value = isObject(element) ? element[field] : undefined;
    if (typeof value !== 'string' && typeof value !== 'number') {
      elements.set(`#${place + 1}`, element);
      return;
    }
    const text = String(value);
    const count = (shared.get(text) ?? 0) + 1;
    shared.set(text, count);
    elements.set(count === 1 ? text : `${text}#${count}`, element);
  });
  return elements;
}
