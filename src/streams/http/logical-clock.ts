/** Begin and end of a read, as numbers in the sequence of all begins and ends. Unlike a wall clock it never goes back, and has no ties. */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** Numbers the begins and ends of the reads of one resource, and so shows which reads overlapped. */
export interface LogicalClock {
  /** Records that a request is about to be sent. Returns its number, which identifies the read in the other methods. */
  begin(): number;
  /** Records that the response of a read has arrived. The read stays open until {@link LogicalClock.settle}. */
  answered(begin: number): Span;
  /** Closes a read that has been processed, or has failed. A held read ({@link LogicalClock.hold}) is closed later. */
  settle(begin: number): void;
  /** Begin of the oldest open read; Infinity if there is none. */
  oldest(): number;
  /** Keeps a read open, even after it is settled, until the returned function is called. */
  hold(begin: number): () => void;
  /** Whether another open read began before this one ended. If so, either may show the newer state of a record. */
  overlaps(span: Span): boolean;
  /** Registers a callback for when the last open read is closed: later reads overlap none of the earlier ones. */
  onIdle(callback: () => void): void;
}

export function logicalClock(): LogicalClock {
  return new Sequence();
}

class Sequence implements LogicalClock {
  #newest = 0;
  readonly #open = new Set<number>();
  readonly #held = new Map<number, 'open' | 'settled'>();
  readonly #onIdle: (() => void)[] = [];

  begin(): number {
    this.#open.add(++this.#newest);
    return this.#newest;
  }

  answered(begin: number): Span {
    return { begin, end: ++this.#newest };
  }

  settle(begin: number): void {
    if (this.#held.has(begin)) this.#held.set(begin, 'settled');
    else this.#close(begin);
  }

  hold(begin: number): () => void {
    this.#held.set(begin, 'open');
    return () => {
      const state = this.#held.get(begin);
      this.#held.delete(begin);
      if (state === 'settled') this.#close(begin);
    };
  }

  oldest(): number {
    return this.#open.values().next().value ?? Infinity;
  }

  overlaps({ begin, end }: Span): boolean {
    for (const other of this.#open) if (other !== begin) return other < end;
    return false;
  }

  onIdle(callback: () => void): void {
    this.#onIdle.push(callback);
  }

  #close(begin: number): void {
    if (this.#open.delete(begin) && this.#open.size === 0) {
      for (const callback of this.#onIdle) callback();
    }
  }
}
