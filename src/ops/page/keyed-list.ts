/** What stands for an item, and how it is brought up to date. */
export interface Row<T> {
  readonly element: Element;
  readonly update?: (item: T) => void;
}

export interface KeyedListOptions<T> {
  readonly parent: Element;
  /** What tells items apart; each item its own. */
  readonly key: (item: T, place: number) => string;
  /** Told the first item that it stands for; `update` is called with each, the first one too. */
  readonly make: (item: T) => Row<T>;
}

/** Elements for items: kept for as long as their item is there, and moved only if need be. */
export function keyedList<T>(options: KeyedListOptions<T>): (items: readonly T[]) => void {
  const { parent, key, make } = options;
  let rows = new Map<string, Row<T>>();
  return (items) => {
    const kept = new Map<string, Row<T>>();
    for (const [place, item] of items.entries()) {
      const name = key(item, place);
      const row = rows.get(name) ?? make(item);
      row.update?.(item);
      kept.set(name, row);
    }
    for (const [name, { element }] of rows) if (!kept.has(name)) element.remove();
    let next = parent.firstElementChild;
    for (const { element } of kept.values()) {
      if (element === next) next = next.nextElementSibling;
      else parent.insertBefore(element, next);
    }
    rows = kept;
  };
}
