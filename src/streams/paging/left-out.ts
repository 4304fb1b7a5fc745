/** The fields that the anchors of a list leave out: those that are set, and those that differ in every answer. */
export interface LeftOut {
  /** As JSON Pointers, sorted. */
  readonly fields: () => readonly string[];
  /** These were found. What is new among them is told. */
  readonly add: (fields: readonly string[]) => void;
}

/** Found ones, at most: a list may give its fields other names in every answer. */
const MAX_FOUND = 50;

/**
 * For all scans of one list: what one has found the others need not find again.
 *
 * @param set Pointers that are known from the start, and not told.
 */
export function leftOut(
  set: readonly string[] = [],
  onFound?: (fields: readonly string[]) => void,
): LeftOut {
  let fields = [...set].sort();
  return {
    fields: () => fields,
    add: (found) => {
      const room = set.length + MAX_FOUND - fields.length;
      const news = found.filter((field) => !fields.includes(field)).slice(0, room);
      if (news.length === 0) return;
      fields = [...fields, ...news].sort();
      onFound?.(news);
    },
  };
}
