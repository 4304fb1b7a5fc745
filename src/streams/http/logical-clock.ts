/**
 * When a read was under way, as places in the order of all beginnings and ends of reads. A clock
 * could not tell apart what happens within its tick, and can be set back.
 */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** The order in which the reads of one resource began and ended. */
export interface LogicalClock {
  /** A request is about to be sent; the value names the read. */
  begin(): number;
  /** Its answer is here, and still to be dealt with. */
  answered(begin: number): Span;
  /** The read has been dealt with, has failed or was given up. */
  settle(begin: number): void;
  /** The beginning of the oldest read that is not settled; Infinity when all are. */
  oldest(): number;
  /** Calls it whenever the last open read is settled: what begins from then on overlaps none before. */
  onIdle(tell: () => void): void;
}

/** A clock that counts the begins and ends of reads, from 1. */
export function logicalClock(): LogicalClock {
  let tick = 0;
  const open = new Set<number>(); // a Set keeps the order of insertion: the oldest is its first
  const told: (() => void)[] = [];
  return {
    begin: () => {
      open.add(++tick);
      return tick;
    },
    answered: (begin) => ({ begin, end: ++tick }),
    settle: (begin) => {
      if (open.delete(begin) && open.size === 0) for (const tell of told) tell();
    },
    oldest: () => open.values().next().value ?? Infinity,
    onIdle: (tell) => void told.push(tell),
  };
}
