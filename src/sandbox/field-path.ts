import type { JsonObject, JsonValue } from './resources.ts';

/**
 * The names on the way to a field: of a JSON Pointer (RFC 6901) as `/loyalty/since`, or with dots
 * as `loyalty.since`.
 *
 * @throws RangeError when a name is empty.
 */
export function parsePath(path: string): readonly string[] {
  const names = path.startsWith('/')
    ? path
        .slice(1)
        .split('/')
        .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    : path.split('.');
  if (names.includes('')) throw new RangeError(`no path of a field: '${path}'`);
  return names;
}

/**
 * Alters the field at the end of a path, in place. On the way a list means each of its elements,
 * unless the path names one by its number; objects that are not there are made when there is
 * something to put into them.
 *
 * @param alter gets undefined for a field that is not there, and returns that to leave it so.
 * @returns whether anything was altered.
 */
export function alterAt(
  holder: JsonValue,
  path: readonly string[],
  alter: (value: JsonValue | undefined) => JsonValue | undefined,
): boolean {
  const name = path[0]!;
  if (Array.isArray(holder) && !/^\d+$/.test(name)) {
    return holder.map((element) => alterAt(element, path, alter)).includes(true);
  }
  if (typeof holder !== 'object' || holder === null) return false;
  if (Array.isArray(holder) && Number(name) >= holder.length) return false;
  const fields = holder as JsonObject;
  const old = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (path.length > 1 && typeof old === 'object' && old !== null) {
    return alterAt(old, path.slice(1), alter);
  }
  if (path.length > 1 && old !== undefined && old !== null) return false;
  const young = path.length === 1 ? alter(old) : madeFor(path.slice(1), alter);
  if (young === undefined || young === old) return false;
  fields[name] = young;
  return true;
}

function madeFor(path: readonly string[], alter: Parameters<typeof alterAt>[2]) {
  const made: JsonObject = {};
  return alterAt(made, path, alter) ? made : undefined;
}
