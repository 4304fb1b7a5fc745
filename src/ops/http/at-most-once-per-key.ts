export interface AtMostOncePerKeyOptions<T> {
  readonly everyMs: number;
  /** Keys that are remembered at once; beyond them the work is done each time. */
  readonly most: number;
  readonly work: (key: string) => T;
}

/** The same work for a key, done at most once in so many ms. What it came to is kept for so long, and then let go of. */
export function atMostOncePerKey<T>(options: AtMostOncePerKeyOptions<T>): (key: string) => T {
  const { everyMs, most, work } = options;
  const kept = new Map<string, T>();
  return (key) => {
    if (kept.has(key)) return kept.get(key)!;
    const result = work(key);
    if (kept.size < most) {
      kept.set(key, result);
      setTimeout(() => kept.delete(key), everyMs).unref();
    }
    return result;
  };
}
