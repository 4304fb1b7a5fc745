/**
 * Begin and end of a read (a request and its response), as numbers in the sequence of all begins and ends of reads. Unlike a wall clock the
 * sequence tells apart events within one tick, and never goes back.
 */
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
  /**
   * Closes a read whose records have been processed, or which has failed or was given up. A held read ({@link LogicalClock.hold}) is closed
   * later.
   */
  settle(begin: number): void;
  /**
   * Number of the begin of the oldest open read; Infinity when no read is open. A read is open until it is settled and not held any more.
   */
  oldest(): number;
  /**
   * Keeps a read open, even after it is settled, until the returned function is called, so that later reads can still be compared with it.
   */
  hold(begin: number): () => void;
  /**
   * Whether another read that is not closed yet began before the read with this span ended. If so, either of them may show the newer state
   * of a record.
   */
  overlaps(span: Span): boolean;
  /** Registers a callback that is called whenever the last open read is closed: reads that begin later overlap none of the earlier ones. */
  onIdle(callback: () => void): void;
}

/** Creates a clock that numbers the begins and ends of reads, from 1. */
export function logicalClock(): LogicalClock {
  return new Sequence();
}

class Sequence implements LogicalClock {
  #newest = 0;
  /** Begins of the open reads, the oldest first. */
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
