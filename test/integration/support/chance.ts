import { mulberry32 } from '../../support/mulberry32.ts';

/** Chances that come out the same for the same seeds. */
export class Chance {
  /** A number from 0 up to, not including, 1. */
  readonly next: () => number;

  constructor(...seeds: readonly (number | string)[]) {
    let state = 0x9e3779b9;
    for (const seed of seeds) {
      const text = String(seed);
      for (let at = 0; at < text.length; at++) {
        state = (Math.imul(state ^ text.charCodeAt(at), 0x85ebca6b) + 0x6d2b79f5) | 0;
      }
    }
    this.next = mulberry32(state);
  }

  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** True so many times of 1. */
  is(share: number): boolean {
    return this.next() < share;
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
