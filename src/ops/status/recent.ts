/** The newest of a kind. */
export interface Recent<T> {
  readonly add: (item: T) => void;
  /** The newest first. */
  readonly all: () => readonly T[];
}

/** Keeps `most` of them. */
export function recent<T>(most: number): Recent<T> {
  const items: T[] = [];
  return {
    add: (item) => {
      items.push(item);
      if (items.length > most) items.shift();
    },
    all: () => items.toReversed(),
  };
}
