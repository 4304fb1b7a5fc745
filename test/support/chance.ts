/** Uniform numbers in [0, 1), the same ones for one seed: mulberry32. */
export function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Seeded random choices: the same ones for the same seed and names. */
export class Chance {
  /** Uniform in [0, 1). */
  readonly next: () => number;

  /** @param names Give other numbers for one seed. */
  constructor(seed: number, ...names: readonly string[]) {
    let state = Math.imul(seed + 1, 0x9e3779b1);
    for (const char of names.join('\n')) {
      state = (Math.imul(state ^ char.codePointAt(0)!, 0x85ebca6b) + 0x6d2b79f5) | 0;
    }
    this.next = mulberry32(state);
  }

  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  shuffled<T>(items: Iterable<T>): T[] {
    const all = [...items];
    for (let last = all.length - 1; last > 0; last--) {
      const other = this.below(last + 1);
      [all[last], all[other]] = [all[other]!, all[last]!];
    }
    return all;
  }
}
