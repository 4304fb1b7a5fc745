/**
 * Returns a function that passes the items of each name to `emit`, at a limited rate: the first item at once, then at most every `everyMs`
 * the newest item and the number of items since the previous call. Memory is bounded by the number of names. Its timers do not keep the
 * process alive; items that are not emitted when the process ends are dropped.
 */
export function coalesce<T>(
  everyMs: number,
  emit: (newest: T, count: number) => void,
): (name: string, one: T) => void {
  const names = new Map<string, PendingGroup<T>>();
  return (name, one) => {
    const gathering = names.get(name);
    if (gathering) {
      gathering.count += 1;
      gathering.newest = one;
      return;
    }
    emit(one, 1);
    const group: PendingGroup<T> = { newest: one, count: 0 };
    names.set(name, group);
    const timer = setInterval(() => {
      const { newest, count } = group;
      group.count = 0;
      if (count > 0) return emit(newest, count);
      clearInterval(timer);
      names.delete(name);
    }, everyMs);
    timer.unref();
  };
}

interface PendingGroup<T> {
  newest: T;
  count: number;
}
