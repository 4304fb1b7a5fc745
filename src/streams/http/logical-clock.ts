/** Begin and end of a read, as numbers of the list's logical clock. Each begin and each end has a larger number than those before it. */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/**
 * Logical clock of one list: it numbers the begins and ends of reads, and so shows which reads overlapped. A read is open from
 * {@link LogicalClock.begin} to {@link LogicalClock.settle}, or to the end of a {@link LogicalClock.hold} if that is later.
 */
export class LogicalClock {
  #newest = 0;
  readonly #open = new Set<number>();
  readonly #held = new Map<number, 'open' | 'settled'>();
  readonly #onIdle: (() => void)[] = [];

  /** Registers a read whose request is about to be sent. Returns the logical time of its begin, which identifies the read. */
  begin(): number {
    this.#open.add(++this.#newest);
    return this.#newest;
  }

  /**
   * Registers that the response of a read has arrived, and returns the read's begin and end as numbers of this clock. The read stays open
   * until {@link LogicalClock.settle}.
   */
  answered(begin: number): Span {
    return { begin, end: ++this.#newest };
  }

  /**
   * Closes a read that has been processed, or has failed. If the read is held open by {@link LogicalClock.hold}, it is closed when that
   * hold ends.
   */
  settle(begin: number): void {
    if (this.#held.has(begin)) this.#held.set(begin, 'settled');
    else this.#close(begin);
  }

  /**
   * Keeps a read open until the returned function is called: a call of {@link LogicalClock.settle} before that takes effect only then.
   * `begin`: the logical time at which the read began.
   */
  hold(begin: number): () => void {
    this.#held.set(begin, 'open');
    return () => {
      const state = this.#held.get(begin);
      this.#held.delete(begin);
      if (state === 'settled') this.#close(begin);
    };
  }

  /** Returns the logical time at which the oldest open read began; Infinity if no read is open. */
  oldest(): number {
    return this.#open.values().next().value ?? Infinity;
  }

  /**
   * Whether another read that is still open began before the end of this span. If so, it is unknown which of the two reads shows the newer
   * state of a record.
   */
  overlaps({ begin, end }: Span): boolean {
    for (const other of this.#open) if (other !== begin) return other < end;
    return false;
  }

  /**
   * Registers a callback that is called each time a read is closed and no other read is open. Reads that begin after such a call overlap
   * none of the earlier reads.
   */
  onIdle(callback: () => void): void {
    this.#onIdle.push(callback);
  }

  #close(begin: number): void {
    if (this.#open.delete(begin) && this.#open.size === 0) {
      for (const callback of this.#onIdle) callback();
    }
  }
}
