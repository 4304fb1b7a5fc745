/** A map that forgets what was set longest ago. */
export interface BoundedMap<K, V> {
  readonly get: (key: K) => V | undefined;
  readonly set: (key: K, value: V) => void;
  readonly delete: (key: K) => void;
  readonly size: () => number;
}

/**
 * Holds at most `most` entries, and at least the newest half of as many: when that half is full, what
 * was set before it goes at once. (Taking the first key out of a Map again and again is slow: V8
 * walks over the places of all that were taken before.)
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
