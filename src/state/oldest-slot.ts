/**
 * Finds the slot of a ring buffer that has the earliest time and is overwritten next. The change of a slot's time takes a logarithmic
 * number of steps.
 */
export class OldestSlot {
  /** The time that was set for each slot, by slot number. */
  readonly #times: number[];
  /**
   * Binary heap of slot numbers, ordered by the slots' times: the slot at an index `i > 0` is not earlier than its parent at `(i - 1) >>>
   * 1`.
   */
  readonly #heap: number[];
  /** Index in `#heap` of each slot, by slot number. */
  readonly #indexes: number[];

  /** @param times Time of each slot of the ring buffer, by slot number. Copied. */
  constructor(times: readonly number[]) {
    this.#times = [...times];
    this.#heap = times.map((_, slot) => slot);
    this.#indexes = [...this.#heap];
    for (let at = (times.length >>> 1) - 1; at >= 0; at--) this.#sink(this.#heap[at]!);
  }

  /** Number of the slot (entry of the ring buffer) with the earliest time; the lowest number if several slots have that time. */
  get slot(): number {
    return this.#heap[0]!;
  }

  /** Earliest of the times of all slots: that of {@link OldestSlot.slot}, which is overwritten next. */
  get time(): number {
    return this.#times[this.slot]!;
  }

  set(slot: number, time: number): void {
    this.#times[slot] = time;
    this.#rise(slot);
    this.#sink(slot);
  }

  #rise(slot: number): void {
    let at = this.#indexes[slot]!;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      if (!this.#isBefore(slot, this.#heap[above]!)) break;
      this.#put(this.#heap[above]!, at);
      at = above;
    }
    this.#put(slot, at);
  }

  #sink(slot: number): void {
    const heap = this.#heap;
    let at = this.#indexes[slot]!;
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      if (left >= heap.length) break;
      const isRight = right < heap.length && this.#isBefore(heap[right]!, heap[left]!);
      const below = isRight ? right : left;
      if (!this.#isBefore(heap[below]!, slot)) break;
      this.#put(heap[below]!, at);
      at = below;
    }
    this.#put(slot, at);
  }

  #isBefore(one: number, other: number): boolean {
    const [a, b] = [this.#times[one]!, this.#times[other]!];
    return a < b || (a === b && one < other);
  }

  #put(slot: number, at: number): void {
    this.#heap[at] = slot;
    this.#indexes[slot] = at;
  }
}
