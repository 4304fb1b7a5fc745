/** A map of limited size that drops its oldest entries. */
export interface BoundedMap<K, V> {
  readonly get: (key: K) => V | undefined;
  readonly set: (key: K, value: V) => void;
  readonly delete: (key: K) => void;
  readonly size: () => number;
}

/**
 * Creates a map of at most `most` entries. At least the newest `most / 2` entries are retained. Older entries are dropped together, each
 * time another `most / 2` entries have been set. Dropping only the oldest entry of a Map at each insertion would be slow, because V8 scans
 * past the slots of deleted entries.
 */
export function boundedMap<K, V>(most: number): BoundedMap<K, V> {
  let newer = new Map<K, V>();
  let older = new Map<K, V>();
  return {
    get: (key) => newer.get(key) ?? older.get(key),
    set: (key, value) => {
      older.delete(key);
      newer.set(key, value);
      if (newer.size < most / 2) return;
      older = newer;
      newer = new Map();
    },
    delete: (key) => {
      newer.delete(key);
      older.delete(key);
    },
    size: () => newer.size + older.size,
  };
}
