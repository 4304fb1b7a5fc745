import { defer, EMPTY, Subject, switchMap, timer } from 'rxjs';
import type { Observable, SchedulerLike, Subscription } from 'rxjs';
import type { QuotaLedger } from '../ledger/ledger.ts';
import type { AgedCount } from '../ledger/ledger-record.ts';
import { usedRequests } from '../ledger/used-requests.ts';
import type { UsedRequests } from '../ledger/used-requests.ts';

/** One quota as a guest sees it: its size, the guest's own use of it, and the permits that it wants. */
export interface QuotaDemand {
  /** Maximum number of requests in a minute. */
  readonly capacity: number;
  /** Requests that this process has sent in the last minute, by their age. */
  readonly used: readonly AgedCount[];
  /** Number of permits wanted at the moment; may be 0. */
  readonly requested: number;
}

/** A guest's demand for permits of each quota, by the quota's name. */
export type QuotaDemands = Readonly<Record<string, QuotaDemand>>;

/** Permits (each the right to send one request to the API) that were granted or declared together. */
export interface PermitBatch {
  /** Number of permits for each quota, by the quota's name. */
  readonly counts: Readonly<Record<string, number>>;
  /** Latest time at which a request with a permit of this batch may be written to its socket, in ms on the scheduler's clock. */
  readonly expiresAt: number;
  /** The time `expiresAt` by the machine's clock. The permits expire when either clock reaches its time. */
  readonly wallExpiresAt: number;
}

/** The permits of a guest. Requests wait for them at the gate of each quota's {@link QuotaLedger}. */
export interface GuestPermits {
  /**
   * Opens a quota, whose requests then wait for permits.
   *
   * @param capacity Maximum number of requests in a minute.
   */
  readonly quota: (name: string, capacity: number) => QuotaLedger;
  /** Whether the current batch of permits has not expired, so that a request that has started may be sent. */
  readonly isBatchValid: () => boolean;
  /** Emits each batch of permits once it is acquired; errors if no permits can be acquired. */
  readonly batches$: Observable<PermitBatch>;
  /** Returns for each quota the permits wanted and the requests sent so far. */
  readonly demands: () => QuotaDemands;
  /** Acquires the first batch of permits before any request waits for it. */
  readonly start: () => void;
  readonly close: () => void;
}

export interface GuestPermitsOptions {
  /** Number of permits to acquire at a time, by the quota's name. Default for other quotas: 1. */
  readonly batchSizes: Readonly<Record<string, number>>;
  /** Acquires permits for at least part of the demands, which it reads when it needs them. Rejects if no permits can be acquired. */
  readonly acquireBatch: (shares: () => QuotaDemands) => Promise<PermitBatch>;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, in ms, which advances while the machine sleeps. Default `Date.now`. */
  readonly wallNow?: () => number;
}

const EMPTY_BATCH: PermitBatch = { counts: {}, expiresAt: -Infinity, wallExpiresAt: -Infinity };

interface GuestQuotaState {
  readonly capacity: number;
  readonly used: UsedRequests;
  remainingStarts: number;
  isWanted: boolean;
}

/**
 * Acquires permits one batch at a time: the next batch when a permit is wanted and no request of the current batch is in flight. So a
 * request that waits long for its connection is never counted with a later batch.
 */
export function guestPermits(options: GuestPermitsOptions): GuestPermits {
  const { batchSizes, acquireBatch, scheduler, wallNow = () => Date.now() } = options;
  const parts = new Map<string, GuestQuotaState>();
  const opened$ = new Subject<void>();
  const batches$ = new Subject<PermitBatch>();
  let batch = EMPTY_BATCH;
  let inFlight = 0;
  let getting: Subscription | undefined;
  let isFirst = true;

  const isBatchValid = () => scheduler.now() < batch.expiresAt && wallNow() < batch.wallExpiresAt;
  const batchOf = (name: string) => batchSizes[name] ?? 1;
  const demands = (): QuotaDemands => {
    const now = scheduler.now();
    const shareOf = (name: string, { capacity, used, isWanted }: GuestQuotaState): QuotaDemand => {
      const isAsked = isWanted || (isFirst && Object.hasOwn(batchSizes, name));
      return {
        capacity,
        used: used.ages(now),
        requested: isAsked ? Math.min(capacity, batchOf(name)) : 0,
      };
    };
    return Object.fromEntries([...parts].map(([name, part]) => [name, shareOf(name, part)]));
  };
  const open = (got: PermitBatch): void => {
    batch = got;
    isFirst = false;
    for (const [name, part] of parts) {
      part.remainingStarts = got.counts[name] ?? 0;
      part.isWanted = false;
    }
    batches$.next(got);
  };
  /**
   * Acquires a batch of permits. Drops the unused permits of the current batch first, so that the demands include all requests for which
   * that batch was used.
   */
  const next$ = defer(() => {
    batch = EMPTY_BATCH;
    return acquireBatch(demands);
  });
  /** Acquires the next batch in a later turn of the event loop, so that the batch includes all permits wanted in this turn. */
  const go = (): void => {
    if (getting || inFlight > 0) return;
    getting = timer(0, scheduler)
      .pipe(switchMap(() => (inFlight > 0 ? EMPTY : next$)))
      .subscribe({
        next: open,
        error: (error: unknown) => batches$.error(error),
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
    quota: (name, capacity) => {
      const part: GuestQuotaState = {
        capacity,
        used: usedRequests(),
        remainingStarts: 0,
        isWanted: false,
      };
      parts.set(name, part);
      return {
        gate: {
          opensAt: (now) => (part.remainingStarts > 0 && isBatchValid() ? now : Infinity),
          want: () => {
            part.isWanted = true;
            go();
          },
          opened$,
        },
        onStart: () => {
          part.remainingStarts -= 1;
          inFlight += 1;
          return (end, isAnswered) => {
            inFlight -= 1;
            part.used.requestEnded(end, isAnswered);
            goAgain();
          };
        },
        count: part.used.count,
      };
    },
    isBatchValid,
    batches$,
    demands,
    start: go,
    close: () => {
      getting?.unsubscribe();
      batch = EMPTY_BATCH;
    },
  };
}
