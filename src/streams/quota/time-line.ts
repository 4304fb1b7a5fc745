/** Something that happened at a time, ms. */
export interface Timed {
  readonly at: number;
}

/** Things in the order of their times. */
export interface TimeLine<T extends Timed> {
  readonly size: () => number;
  /** The earliest. */
  readonly first: () => T | undefined;
  readonly last: () => T | undefined;
  /** By its place, from 0: the earliest. */
  readonly at: (place: number) => T | undefined;
  /** Behind all of the same time. */
  readonly add: (item: T) => void;
  readonly dropFirst: () => T | undefined;
  readonly dropLast: () => T | undefined;
  /** How many are `spanMs` old or older. */
  readonly aged: (spanMs: number, now: number) => number;
}

/** Places of dropped items that are kept at least, so that moving the others costs next to nothing. */
const LEAST_DROPPED = 1_000;

/** An empty line. Whatever comes in the order of its time is added and dropped at no cost that grows. */
export function timeLine<T extends Timed>(): TimeLine<T> {
  let items: T[] = [];
  let begin = 0;

  /** The first place, from `begin` on, of an item that is not `spanMs` old. */
  const end = (spanMs: number, now: number): number => {
    let [low, high] = [begin, items.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (items[middle]!.at + spanMs <= now) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const last = () => (items.length > begin ? items[items.length - 1] : undefined);
  return {
    size: () => items.length - begin,
    first: () => items[begin],
    last,
    at: (place) => items[begin + place],
    add: (item) => {
      if ((last()?.at ?? -Infinity) <= item.at) items.push(item);
      else items.splice(end(0, item.at), 0, item); // a clock was set back
    },
    dropFirst: () => {
      const item = items[begin];
      if (item === undefined) return undefined;
      begin += 1;
      if (begin >= LEAST_DROPPED && 2 * begin >= items.length) {
        items = items.slice(begin);
        begin = 0;
      }
      return item;
    },
    dropLast: () => (items.length > begin ? items.pop() : undefined),
    aged: (spanMs, now) => end(spanMs, now) - begin,
  };
}
