// Drift: the sandbox serves records in another form than it stores them, with added fields, converted fields or missing keys.

import { isObject, RULES, type JsonObject, type JsonValue, type Resource } from './resources.ts';

/** How a drift (an added or converted field, or a missing key field) applies to existing records. */
export interface DriftOptions {
  /**
   * Number of existing records, chosen by the seed, that the drift alters at once. It alters the others when they are next changed.
   * `Infinity` means as many as possible. Default 0.
   */
  readonly existing?: number;
  /**
   * Whether the records altered at once (see `existing`) get a new `updated_at`. If false, full scans find the change, but polls do not.
   * Default true.
   */
  readonly touch?: boolean;
}

/** Alters a record in place before it is served, to simulate schema drift. @returns whether the record was altered. */
export type DriftRule = (record: JsonObject) => boolean;

/** Returns a rule by which the sandbox adds a field to the records that lack it. @throws RangeError if the path is invalid. */
export function newField(field: string, value: JsonValue): DriftRule {
  const path = parsePath(field);
  return (record) =>
    alterAt(record, path, (old) => (old === undefined ? structuredClone(value) : undefined));
}

/** Returns a rule by which the sandbox converts the values of a field, except null. @throws RangeError if the path is invalid. */
export function convertedField(field: string, convert: (value: JsonValue) => JsonValue): DriftRule {
  const path = parsePath(field);
  return (record) =>
    alterAt(record, path, (old) => (old === undefined || old === null ? undefined : convert(old)));
}

/**
 * Applies drift rules to new versions of records before they are served. Also stores each altered version as it was without drift, because
 * later changes start from that text.
 */
export class Drift {
  readonly #rules = new Map<Resource, Set<DriftRule>>();
  /** Number of active removals of the key field (calls of `loseKey` that are not undone), by record. */
  readonly #keyless = new Map<string, number>();
  /** For each record that drift has altered: its JSON text without drift, by list and id. */
  readonly #plain = new Map<string, string>();

  /**
   * Adds a drift rule: it alters each new version of the list's records before the sandbox serves it.
   *
   * @returns a function that removes the rule. A record that the rule has altered stays altered until its next change.
   */
  add(resource: Resource, rule: DriftRule): () => void {
    const rules = this.#rules.get(resource) ?? new Set();
    this.#rules.set(resource, rules.add(rule));
    return () => void rules.delete(rule);
  }

  /**
   * Counts removals of a record's key field: `by` 1 adds one, -1 undoes one. {@link serve} leaves out the key field while any removal is
   * left.
   */
  loseKey(resource: Resource, id: number, by: 1 | -1): void {
    const name = recordId(resource, id);
    const times = (this.#keyless.get(name) ?? 0) + by;
    if (times > 0) this.#keyless.set(name, times);
    else this.#keyless.delete(name);
  }

  /** Whether the newest drift rule of the list would alter the record with this JSON text. */
  concerns(resource: Resource, text: string): boolean {
    const record = JSON.parse(text) as JsonValue;
    return isObject(record) && this.#applyRules(resource, record);
  }

  /**
   * Returns the text to serve for a new version of a record: `text`, altered by the list's drift rules, and without the key field if
   * {@link loseKey} has removed it. If the result differs from `text`, stores `text` for {@link plain}.
   */
  serve(resource: Resource, id: number, text: string): string {
    const served = this.#drifted(resource, id, text);
    if (served === text) this.forget(resource, id);
    else this.#plain.set(recordId(resource, id), text);
    return served;
  }

  /**
   * Returns the JSON text of a record's newest version as it was before drift altered it; undefined if drift has not altered that version.
   */
  plain(resource: Resource, id: number): string | undefined {
    return this.#plain.get(recordId(resource, id));
  }

  /**
   * Discards the text that {@link plain} returns for a record. To be called when the record is deleted, or when its newest version is not
   * altered by drift.
   */
  forget(resource: Resource, id: number): void {
    this.#plain.delete(recordId(resource, id));
  }

  #drifted(resource: Resource, id: number, text: string): string {
    const keyless = this.#keyless.has(recordId(resource, id));
    if (!keyless && !this.#rules.get(resource)?.size) return text;
    const record = JSON.parse(text) as JsonValue;
    if (!isObject(record)) return text;
    this.#applyRules(resource, record);
    if (keyless) delete record[RULES[resource].keyField];
    return JSON.stringify(record);
  }

  /** Applies the list's drift rules in the order in which they were added. @returns whether the rule added last altered the record. */
  #applyRules(resource: Resource, record: JsonObject): boolean {
    let altered = false;
    for (const rule of this.#rules.get(resource) ?? []) altered = rule(record);
    return altered;
  }
}

function recordId(resource: Resource, id: number): string {
  return `${resource}/${id}`;
}

/**
 * Parses a JSON Pointer (RFC 6901) such as `/loyalty/since`, or names joined by dots such as `loyalty.since`.
 *
 * @throws RangeError if a name is empty.
 */
export function parsePath(path: string): readonly string[] {
  const names = path.startsWith('/')
    ? path
        .slice(1)
        .split('/')
        .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    : path.split('.');
  if (names.includes(''))
    throw new RangeError(
      `'${path}' is not the path of a field of the sandbox, because a name in it is empty: write names joined by dots, such as loyalty.since, or a JSON Pointer, such as /loyalty/since`,
    );
  return names;
}

/**
 * Alters, in place, the field at a path. In an array, a number selects one element; any other name applies to every element. Missing
 * objects on the path are created if `alter` returns a value for the field.
 *
 * @param alter Receives undefined for a missing field, and returns undefined to leave the field unchanged.
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
