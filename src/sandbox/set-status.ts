import { isObject } from './resources.ts';
import type { JsonObject, JsonValue } from './resources.ts';

const PATH = /^(?:(order_edit|fulfillment_info|club_package_info)(?:\[(.+)\])?\.)?(\w+)$/;
const IDENTITY: Readonly<Record<string, string>> = {
  order_edit: 'created_at',
  fulfillment_info: 'fulfillment_id',
};

/**
 * Sets a field of an order, or of a part of it, as `fulfillment_info[F-100001-1].status`.
 *
 * @throws RangeError when there is no such place.
 */
export function setStatus(order: JsonObject, path: string, value: string | null): void {
  const [, part, identity, field] = PATH.exec(path) ?? [];
  if (field === undefined) throw new RangeError(`no field of an order: ${path}`);
  const holder = part === undefined ? order : partOf(order[part], IDENTITY[part], identity);
  if (!holder) throw new RangeError(`the order has no ${path}`);
  holder[field] = value;
}

/** The part itself, or of a list the one with this identity, or the first. */
function partOf(
  part: JsonValue | undefined,
  name: string | undefined,
  identity: string | undefined,
): JsonObject | undefined {
  const parts = (Array.isArray(part) ? part : [part]).filter(isObject);
  return identity === undefined || name === undefined
    ? parts[0]
    : parts.find((candidate) => candidate[name] === identity);
}
