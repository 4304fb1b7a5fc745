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
  let tick = 0;
  const open = new Set<number>(); // in order of insertion: the oldest read is first
  const held = new Map<number, 'open' | 'settled'>();
  const callbacks: (() => void)[] = [];
  const close = (begin: number): void => {
    if (open.delete(begin) && open.size === 0) for (const callback of callbacks) callback();
  };
  return {
    begin: () => {
      open.add(++tick);
      return tick;
    },
    answered: (begin) => ({ begin, end: ++tick }),
    settle: (begin) => {
      if (held.has(begin)) held.set(begin, 'settled');
      else close(begin);
    },
    hold: (begin) => {
      held.set(begin, 'open');
      return () => {
        const state = held.get(begin);
        held.delete(begin);
        if (state === 'settled') close(begin);
      };
    },
    oldest: () => open.values().next().value ?? Infinity,
    overlaps: ({ begin, end }) => {
      for (const other of open) if (other !== begin) return other < end;
      return false;
    },
    onIdle: (callback) => void callbacks.push(callback),
  };
}
