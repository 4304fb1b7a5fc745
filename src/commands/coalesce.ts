/**
 * Tells of what may come in numbers: the first of a name at once, and as long as more of it comes
 * one every `everyMs`, the newest, with how many there were since the one told before. Memory is
 * bounded by the number of names. Its timers keep no process from ending; what they have not told
 * by then is not told.
 */
export function coalesce<T>(
  everyMs: number,
  tell: (newest: T, count: number) => void,
): (name: string, one: T) => void {
  const names = new Map<string, Gathering<T>>();
  return (name, one) => {
    const gathering = names.get(name);
    if (gathering) {
      gathering.count += 1;
      gathering.newest = one;
      return;
    }
    tell(one, 1);
    const begun: Gathering<T> = { newest: one, count: 0 };
    names.set(name, begun);
    const timer = setInterval(() => {
      const { newest, count } = begun;
      begun.count = 0;
      if (count > 0) return tell(newest, count);
      clearInterval(timer);
      names.delete(name);
    }, everyMs);
    timer.unref();
  };
}

interface Gathering<T> {
  newest: T;
  count: number;
}
