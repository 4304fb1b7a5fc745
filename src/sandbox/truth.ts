import type { Arrival, Arrivals } from './arrivals.ts';
import { ENDPOINTS } from './resources.ts';
import type { Endpoint, JsonValue, RecordKey, Resource } from './resources.ts';
import type { Change, Store } from './store.ts';

/**
 * What is so: what a correct client must have found out in the end. Drift is in it, as it is served;
 * faults are not, nor is what a list hides.
 */
export interface Truth {
  /** Records as they are served, parsed, in order of their keys; the list may change meanwhile. */
  records(resource: Resource): IterableIterator<JsonValue>;
  /** Keys of the records, in their order. */
  keys(resource: Resource): IterableIterator<RecordKey>;
  /** A record as it is served, parsed; undefined when there is none. */
  get(resource: Resource, key: RecordKey): JsonValue | undefined;
  /** The same as JSON text, byte for byte. */
  text(resource: Resource, key: RecordKey): string | undefined;
  /** How many records there are. */
  count(resource: Resource): number;
  /** The newest changes (`changeLogLimit`), oldest first. */
  readonly changes: readonly Change[];
  /** The newest requests to an endpoint (`requestLogLimit`), oldest first, refused ones included. */
  requests(endpoint: Endpoint): readonly Readonly<Arrival>[];
  /** Most of those within any `[t, t + windowMs)`. */
  mostInAnyWindow(endpoint: Endpoint, windowMs: number): number;
  /** How many of those were over the quota; of all endpoints unless one is named. */
  refused(endpoint?: Endpoint): number;
}

/**
 * The truth about a store and what arrived.
 *
 * @param refusedStatus of answers over the quota.
 */
export function truthOf(store: Store, arrivals: Arrivals, refusedStatus: number): Truth {
  function* keys(resource: Resource): IterableIterator<RecordKey> {
    const table = store.table(resource);
    for (let last = -1; ;) {
      const seen = table.byKey.rank((id) => id <= last);
      const ids = table.byKey.slice(seen, seen + 1_000);
      if (ids.length === 0) return;
      for (const id of ids) if (table.has(id)) yield table.keyOf(id);
      last = ids.at(-1)!;
    }
  }
  const text = (resource: Resource, key: RecordKey) => {
    const table = store.table(resource);
    return table.text(table.idOf(key));
  };
  const get = (resource: Resource, key: RecordKey) => {
    const found = text(resource, key);
    return found === undefined ? undefined : (JSON.parse(found) as JsonValue);
  };
  return {
    *records(resource) {
      for (const key of keys(resource)) {
        const record = get(resource, key);
        if (record !== undefined) yield record;
      }
    },
    keys,
    get,
    text,
    count: (resource) => store.table(resource).size,
    get changes() {
      return store.changes();
    },
    requests: (endpoint) => arrivals.of(endpoint),
    mostInAnyWindow: (endpoint, windowMs) => arrivals.mostInAnyWindow(endpoint, windowMs),
    refused: (endpoint) =>
      (endpoint ? [endpoint] : ENDPOINTS)
        .flatMap((name) => arrivals.of(name))
        .filter(({ status }) => status === refusedStatus).length,
  };
}
