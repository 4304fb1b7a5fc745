/** The same work, done at most once in so many ms: in between what it came to last time is given again. */
export function atMostOncePer<T>(everyMs: number, work: () => T): () => T {
  let last: { readonly at: number; readonly result: T } | undefined;
  return () => {
    const now = performance.now();
    if (!last || now - last.at >= everyMs) last = { at: now, result: work() };
    return last.result;
  };
}
