/** Hashes a seed and a number to 32 well-distributed bits. */
export function mix(seed: number, n: number): number {
  let h = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(n + 0x7f4a7c15, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * Seeded random number generator. Two generators with the same `seed` and `branch` return the same numbers; another `branch` gives other
 * numbers from the same seed.
 */
export class Random {
  readonly #seed: number;
  #drawn = 0;

  constructor(seed: number, branch = 0) {
    this.#seed = mix(seed, branch);
  }

  /** Returns a number from 0 up to, not including, 1. */
  next(): number {
    return mix(this.#seed, this.#drawn++) / 2 ** 32;
  }

  /** Returns a whole number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Returns a whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Returns one of `choices`; an element that is listed more often is more likely. */
  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  /** Yields each of `items` once, in random order. Draws one random number for each item that is consumed. */
  *shuffled<T>(items: readonly T[]): IterableIterator<T> {
    const rest = [...items];
    for (let left = rest.length; left > 0; left--) {
      const at = this.below(left);
      yield rest[at]!;
      rest[at] = rest[left - 1]!;
    }
  }
}
