import { EMPTY, Subject, switchMap, timer } from 'rxjs';
import type { Observable, Subscription } from 'rxjs';
import type { LeaseClocks, QuotaLedger } from '../ledger/ledger.ts';
import type { AgedCount } from '../ledger/ledger-record.ts';
import { usedRequests } from '../ledger/used-requests.ts';
import type { UsedRequests } from '../ledger/used-requests.ts';

/** One quota as a guest sees it: its size, the requests that the guest has counted, and the number of permits that the guest wants. */
export interface QuotaDemand {
  /** Maximum number of requests in a minute. */
  readonly capacity: number;
  /** Requests of the last minute, by their age: those that this process sent, and those of others that it detected in responses. */
  readonly used: readonly AgedCount[];
  /** Number of permits (each the right to send one request) that the guest wants at the moment; may be 0. */
  readonly requested: number;
}

/**
 * Demands of a guest process, one for each quota, by the quota's name: the number of permits that it wants, and what it has used already.
 */
export type QuotaDemands = Readonly<Record<string, QuotaDemand>>;

/** Permits (each the right to send one request to the API) that were granted or declared together. */
export interface PermitBatch {
  /** Number of permits for each quota, by the quota's name. */
  readonly counts: Readonly<Record<string, number>>;
  /** When the permits expire by the scheduler's clock, in ms. A request must be written to its socket before that. */
  readonly expiresAt: number;
  /**
   * When the permits expire by the machine's clock (which advances while the machine sleeps), in epoch ms. Permits expire at this time or
   * at `expiresAt`, whichever comes first.
   */
  readonly wallExpiresAt: number;
}

export interface GuestPermitsOptions extends LeaseClocks {
  /** Number of permits to acquire at a time, by the quota's name. Quotas that are not listed: 1. */
  readonly batchSizes: Readonly<Record<string, number>>;
  /**
   * Acquires permits for at least part of the demands. Calls `demands` for the current demands before each attempt. Rejects if no permits
   * can be acquired.
   */
  readonly acquireBatch: (demands: () => QuotaDemands) => Promise<PermitBatch>;
}

const EMPTY_BATCH: PermitBatch = { counts: {}, expiresAt: -Infinity, wallExpiresAt: -Infinity };

interface GuestQuota {
  readonly capacity: number;
  readonly used: UsedRequests;
  /** Number of requests that may still start with permits of the current batch. */
  remainingStarts: number;
  /** Whether a request has waited for a permit since the current batch was acquired. */
  isWanted: boolean;
}

/**
 * Permits of a guest (a process beside the service, such as `check`). Each request waits until there is a permit for its quota. Permits are
 * acquired in batches.
 */
export class GuestPermits {
  readonly #options: GuestPermitsOptions;
  readonly #quotas = new Map<string, GuestQuota>();
  readonly #opened$ = new Subject<void>();
  readonly #batches$ = new Subject<PermitBatch>();
  /** Emits each batch of permits (a permit is the right to send one request) once it is acquired; errors if no permits can be acquired. */
  readonly batches$: Observable<PermitBatch> = this.#batches$;
  /** The current batch of permits. It is empty before the first batch, while the next one is acquired, and after `close`. */
  #batch = EMPTY_BATCH;
  #isFirst = true;
  #inFlight = 0;
  #acquiring: Subscription | undefined;

  constructor(options: GuestPermitsOptions) {
    this.#options = options;
  }

  /**
   * Registers the quota `name`, and returns the object that admits and counts its requests: a request waits until there is a permit for it.
   *
   * @param capacity Maximum number of requests in a minute.
   */
  quota(name: string, capacity: number): QuotaLedger {
    const used = usedRequests();
    const quota: GuestQuota = { capacity, used, remainingStarts: 0, isWanted: false };
    this.#quotas.set(name, quota);
    return {
      gate: {
        opensAt: (now) => (quota.remainingStarts > 0 && this.isBatchValid() ? now : Infinity),
        want: () => {
          quota.isWanted = true;
          this.start();
        },
        opened$: this.#opened$,
      },
      onStart: () => {
        quota.remainingStarts -= 1;
        this.#inFlight += 1;
        return (end, isAnswered) => {
          this.#inFlight -= 1;
          used.requestEnded(end, isAnswered);
          if ([...this.#quotas.values()].some(({ isWanted }) => isWanted)) this.start();
        };
      },
      count: used.count,
    };
  }

  /**
   * Whether the current batch of permits is still valid. Checked again just before a request is sent, because the batch may have expired
   * since the request started.
   */
  isBatchValid(): boolean {
    const { scheduler, wallNow = Date.now } = this.#options;
    return scheduler.now() < this.#batch.expiresAt && wallNow() < this.#batch.wallExpiresAt;
  }

  /** Returns the demand for each quota, by the quota's name: the requests that this process has counted, and the permits that it wants. */
  demands(): QuotaDemands {
    const { batchSizes, scheduler } = this.#options;
    const now = scheduler.now();
    return Object.fromEntries(
      [...this.#quotas].map(([name, { capacity, used, isWanted }]) => {
        // Before the first batch of permits, quotas with a size in `batchSizes` count as if a request waited.
        const isRequested = isWanted || (this.#isFirst && Object.hasOwn(batchSizes, name));
        const requested = isRequested ? Math.min(capacity, batchSizes[name] ?? 1) : 0;
        return [name, { capacity, used: used.ages(now), requested }];
      }),
    );
  }

  /**
   * Starts to acquire the next batch of permits. Does nothing while a batch is being acquired, or requests of the current batch are in
   * flight.
   */
  start(): void {
    // Every request is to be counted with the batch in which it started.
    if (this.#acquiring || this.#inFlight > 0) return;
    // In a later turn of the event loop, so that the batch includes all permits wanted in this turn.
    this.#acquiring = timer(0, this.#options.scheduler)
      .pipe(switchMap(() => (this.#inFlight > 0 ? EMPTY : this.#acquire())))
      .subscribe({
        next: (batch) => this.#open(batch),
        error: (error: unknown) => this.#batches$.error(error),
        complete: () => {
          this.#acquiring = undefined;
          this.#opened$.next();
        },
      });
  }

  close(): void {
    this.#acquiring?.unsubscribe();
    this.#batch = EMPTY_BATCH;
  }

  /** Acquires the next batch of permits. The unused permits of the current batch are dropped. */
  #acquire(): Promise<PermitBatch> {
    // A request that started with one of these permits after the call of `demands()` would not be counted in the demands.
    this.#batch = EMPTY_BATCH;
    return this.#options.acquireBatch(() => this.demands());
  }

  #open(batch: PermitBatch): void {
    this.#batch = batch;
    this.#isFirst = false;
    for (const [name, quota] of this.#quotas) {
      quota.remainingStarts = batch.counts[name] ?? 0;
      quota.isWanted = false;
    }
    this.#batches$.next(batch);
  }
}
