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
  /** A read stays open until what this gives is called, however early it is settled: it is to be judged by later. */
  hold(begin: number): () => void;
  /** Whether another read that is not settled had begun before this one ended: what either shows may be newer. */
  overlaps(span: Span): boolean;
  /** Calls it whenever the last open read is settled: what begins from then on overlaps none before. */
  onIdle(tell: () => void): void;
}

/** A clock that counts the begins and ends of reads, from 1. */
export function logicalClock(): LogicalClock {
  let tick = 0;
  const open = new Set<number>(); // a Set keeps the order of insertion: the oldest is its first
  const held = new Map<number, 'open' | 'settled'>();
  const told: (() => void)[] = [];
  const close = (begin: number): void => {
    if (open.delete(begin) && open.size === 0) for (const tell of told) tell();
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
    onIdle: (tell) => void told.push(tell),
  };
}
