import { defer, EMPTY, Subject, switchMap, timer } from 'rxjs';
import type { Observable, SchedulerLike, Subscription } from 'rxjs';
import type { LedgerPart } from '../ledger/ledger.ts';
import type { AgedCount } from '../ledger/ledger-record.ts';
import { usedRequests } from '../ledger/used-requests.ts';
import type { UsedRequests } from '../ledger/used-requests.ts';

/** What is known here of one quota. */
export interface Share {
  /** Most requests in a minute. */
  readonly capacity: number;
  /** Those of this process, by their age. */
  readonly used: readonly AgedCount[];
  /** So many are wanted; 0: just now none. */
  readonly wanted: number;
}

/** By the quota's name. */
export type Shares = Readonly<Record<string, Share>>;

/** Permits for requests, by the quota's name. */
export interface Batch {
  readonly counts: Readonly<Record<string, number>>;
  /** Until then a request with one may be written to its socket: ms, on the scheduler's clock and on the machine's. */
  readonly end: number;
  readonly wallEnd: number;
}

/** The permits of a process that asks beside whoever runs the account. {@link LedgerPart} by part they hold its requests back. */
export interface GuestPermits {
  /** @param capacity Most requests in a minute. */
  readonly part: (name: string, capacity: number) => LedgerPart;
  /** Whether a request that has started may still be sent. */
  readonly isRunning: () => boolean;
  /** Emits each batch that was got; errors when none is to be had. */
  readonly got$: Observable<Batch>;
  readonly shares: () => Shares;
  /** Gets the first batch before anything is asked. */
  readonly begin: () => void;
  readonly close: () => void;
}

export interface GuestPermitsOptions {
  /** How many are got of each quota at a time. Of those that are not named: one. */
  readonly batches: Readonly<Record<string, number>>;
  /** Resolves with some of what is wanted as it is asked for; rejects when nothing is to be had. */
  readonly get: (shares: () => Shares) => Promise<Batch>;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, ms: it goes on while the machine sleeps. Default `Date.now`. */
  readonly wallNow?: () => number;
}

const NONE: Batch = { counts: {}, end: -Infinity, wallEnd: -Infinity };

interface Part {
  readonly capacity: number;
  readonly used: UsedRequests;
  left: number;
  isWanted: boolean;
}

/**
 * One batch at a time: the next is got when one is wanted, and nothing of the one before is under way. So a request that
 * waits long for its connection is never taken for one of a later batch.
 */
export function guestPermits(options: GuestPermitsOptions): GuestPermits {
  const { batches, get, scheduler, wallNow = () => Date.now() } = options;
  const parts = new Map<string, Part>();
  const opened$ = new Subject<void>();
  const got$ = new Subject<Batch>();
  let batch = NONE;
  let underWay = 0;
  let getting: Subscription | undefined;
  let isFirst = true;

  const isRunning = () => scheduler.now() < batch.end && wallNow() < batch.wallEnd;
  const batchOf = (name: string) => batches[name] ?? 1;
  const shares = (): Shares => {
    const now = scheduler.now();
    const shareOf = (name: string, { capacity, used, isWanted }: Part): Share => {
      const isAsked = isWanted || (isFirst && Object.hasOwn(batches, name));
      return {
        capacity,
        used: used.ages(now),
        wanted: isAsked ? Math.min(capacity, batchOf(name)) : 0,
      };
    };
    return Object.fromEntries([...parts].map(([name, part]) => [name, shareOf(name, part)]));
  };
  const open = (got: Batch): void => {
    batch = got;
    isFirst = false;
    for (const [name, part] of parts) {
      part.left = got.counts[name] ?? 0;
      part.isWanted = false;
    }
    got$.next(got);
  };
  /** What is left of the batch before is given up: what is told of it is all that it ever comes to. */
  const next$ = defer(() => {
    batch = NONE;
    return get(shares);
  });
  /** Behind all that wants something, or starts, in this moment. */
  const go = (): void => {
    if (getting || underWay > 0) return;
    getting = timer(0, scheduler)
      .pipe(switchMap(() => (underWay > 0 ? EMPTY : next$)))
      .subscribe({
        next: open,
        error: (error: unknown) => got$.error(error),
        complete: () => {
          getting = undefined;
          opened$.next();
        },
      });
  };
  const goAgain = (): void => {
    if ([...parts.values()].some(({ isWanted }) => isWanted)) go();
  };

  return {
    part: (name, capacity) => {
      const part: Part = { capacity, used: usedRequests(), left: 0, isWanted: false };
      parts.set(name, part);
      return {
        gate: {
          opensAt: (now) => (part.left > 0 && isRunning() ? now : Infinity),
          want: () => {
            part.isWanted = true;
            go();
          },
          opened$,
        },
        onStart: () => {
          part.left -= 1;
          underWay += 1;
          return (end, isAnswered) => {
            underWay -= 1;
            part.used.end(end, isAnswered);
            goAgain();
          };
        },
        count: part.used.count,
      };
    },
    isRunning,
    got$,
    shares,
    begin: go,
    close: () => {
      getting?.unsubscribe();
      batch = NONE;
    },
  };
}
