/** A map of limited size that drops its oldest entries. */
export type BoundedMap<K, V> = Readonly<ReturnType<typeof boundedMap<K, V>>>;

/** Creates a map of at most `most` entries. When more are set, at least the newest `most / 2` entries are retained. */
export function boundedMap<K, V>(most: number) {
  let newer = new Map<K, V>();
  let older = new Map<K, V>();
  return {
    get: (key: K): V | undefined => newer.get(key) ?? older.get(key),
    set: (key: K, value: V): void => {
      older.delete(key);
      newer.set(key, value);
      if (newer.size < most / 2) return;
      // Drops many entries at once: dropping one at each insertion would be slow, because V8 scans past the slots of deleted entries.
      older = newer;
      newer = new Map();
    },
    delete: (key: K): void => {
      newer.delete(key);
      older.delete(key);
    },
    size: (): number => newer.size + older.size,
  };
}
