/** Something that happened at a time, ms. */
export interface Timed {
  readonly at: number;
}

/** Places of dropped items that are kept at least, so that moving the others costs next to nothing. */
const LEAST_DROPPED = 1_000;

/**
 * Things in the order of their times. Whatever comes in that order is added and dropped at no cost that grows.
 *
 * A class: a fleet has tens of thousands of these lines, most of them empty.
 */
export class TimeLine<T extends Timed> {
  #items: T[] = [];
  #begin = 0;

  get size(): number {
    return this.#items.length - this.#begin;
  }

  /** The earliest. */
  get first(): T | undefined {
    return this.#items[this.#begin];
  }

  get last(): T | undefined {
    return this.size > 0 ? this.#items[this.#items.length - 1] : undefined;
  }

  /** By its place, from 0: the earliest. */
  at(place: number): T | undefined {
    return this.#items[this.#begin + place];
  }

  /** Behind all of the same time. */
  add(item: T): void {
    if ((this.last?.at ?? -Infinity) <= item.at) this.#items.push(item);
    else this.#items.splice(this.#end(0, item.at), 0, item); // a clock was set back
  }

  dropFirst(): T | undefined {
    const item = this.first;
    if (item === undefined) return undefined;
    this.#begin += 1;
    if (this.#begin >= LEAST_DROPPED && 2 * this.#begin >= this.#items.length) {
      this.#items = this.#items.slice(this.#begin);
      this.#begin = 0;
    }
    return item;
  }

  dropLast(): T | undefined {
    return this.size > 0 ? this.#items.pop() : undefined;
  }

  /** How many are `spanMs` old or older. */
  aged(spanMs: number, now: number): number {
    return this.#end(spanMs, now) - this.#begin;
  }

  /** The first place, from the earliest on, of an item that is not `spanMs` old. */
  #end(spanMs: number, now: number): number {
    let [low, high] = [this.#begin, this.#items.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#items[middle]!.at + spanMs <= now) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
