// Records served otherwise than they are: new fields, converted ones, lost keys.

import { isObject, RULES } from './resources.ts';
import type { JsonObject, JsonValue, Resource } from './resources.ts';

/** How records that are there when a drift begins take part in it. */
export interface DriftOptions {
  /**
   * How many of those that it concerns drift at once, chosen by the seed; `Infinity` is all. Of
   * records that `replaceText` made odd none is. Default 0: each only when it is next changed.
   */
  readonly existing?: number;
  /** Whether those get a new `updated_at`; without one only a full read finds them. Default true. */
  readonly touch?: boolean;
}

/** Alters a record in place. @returns whether it did. */
export type DriftRule = (record: JsonObject) => boolean;

/** A field that records carry unless they have it anyway. @throws RangeError when it is no path. */
export function newField(field: string, value: JsonValue): DriftRule {
  const path = parsePath(field);
  return (record) =>
    alterAt(record, path, (old) => (old === undefined ? structuredClone(value) : undefined));
}

/** A field whose values are served as others; null stays. @throws RangeError when it is no path. */
export function convertedField(field: string, convert: (value: JsonValue) => JsonValue): DriftRule {
  const path = parsePath(field);
  return (record) =>
    alterAt(record, path, (old) => (old === undefined || old === null ? undefined : convert(old)));
}

/**
 * How what is served differs from what the business goes by: as when a server begins to write its
 * records another way. Life goes on in the records as they were, whatever they look like.
 */
export class Drift {
  readonly #rules = new Map<Resource, Set<DriftRule>>();
  /** Records without their key, each as often as it was lost. */
  readonly #keyless = new Map<string, number>();
  /** The newest version of those that are served otherwise, as it would be without drift. */
  readonly #plain = new Map<string, string>();

  /** @returns a function that ends the rule: records are as before when they are next changed. */
  add(resource: Resource, rule: DriftRule): () => void {
    const rules = this.#rules.get(resource) ?? new Set();
    this.#rules.set(resource, rules.add(rule));
    return () => void rules.delete(rule);
  }

  /** @param by 1: the record loses its key once more; -1: once less. */
  loseKey(resource: Resource, id: number, by: 1 | -1): void {
    const name = nameOf(resource, id);
    const times = (this.#keyless.get(name) ?? 0) + by;
    if (times > 0) this.#keyless.set(name, times);
    else this.#keyless.delete(name);
  }

  /** Whether the last of the rules, put in force a moment ago, would alter a record. */
  concerns(resource: Resource, text: string): boolean {
    const record = JSON.parse(text) as JsonValue;
    return isObject(record) && this.#applyRules(resource, record);
  }

  /** What is to be served for a new version of a record; the version is remembered if it differs. */
  serve(resource: Resource, id: number, text: string): string {
    const served = this.#drifted(resource, id, text);
    if (served === text) this.forget(resource, id);
    else this.#plain.set(nameOf(resource, id), text);
    return served;
  }

  /** The newest version of a record without drift; undefined when it is the one that is served. */
  plain(resource: Resource, id: number): string | undefined {
    return this.#plain.get(nameOf(resource, id));
  }

  /** The newest version of a record is gone, or is served as it is. */
  forget(resource: Resource, id: number): void {
    this.#plain.delete(nameOf(resource, id));
  }

  #drifted(resource: Resource, id: number, text: string): string {
    const keyless = this.#keyless.has(nameOf(resource, id));
    if (!keyless && !this.#rules.get(resource)?.size) return text;
    const record = JSON.parse(text) as JsonValue;
    if (!isObject(record)) return text;
    this.#applyRules(resource, record);
    if (keyless) delete record[RULES[resource].keyField];
    return JSON.stringify(record);
  }

  /** In the order in which they came into force. @returns what the last one did. */
  #applyRules(resource: Resource, record: JsonObject): boolean {
    let altered = false;
    for (const rule of this.#rules.get(resource) ?? []) altered = rule(record);
    return altered;
  }
}

function nameOf(resource: Resource, id: number): string {
  return `${resource}/${id}`;
}

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
