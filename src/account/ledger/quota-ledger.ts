import type { Observable } from 'rxjs';
import type { QuotaDeclaration, TimedCount } from './ledger-record.ts';
import { StartPacer } from './start-pacer.ts';
import type { Gate } from '../../streams/quota/token-bucket.ts';
import { usedRequests } from './used-requests.ts';

/** Connects a quota's token bucket with the ledger, so that only declared requests start. */
export interface QuotaLedger {
  readonly gate: Gate;
  /**
   * To be called when a request starts. Returns a function to be called when the request ends, with whether it was answered. The times `at`
   * and `end` are in ms on the scheduler's clock.
   */
  readonly onStart: (at: number) => (end: number, isAnswered: boolean) => void;
  /** Adds requests of other processes to the counted ones. Declarations include them for a minute, so that a successor counts them too. */
  readonly count: (requests: readonly TimedCount[]) => void;
}

/**
 * The lease of this process, as its quotas see it: the right to send requests to the API for some ten seconds, given by a declaration in
 * the ledger topic.
 */
export interface Lease {
  readonly isLeaseValid: () => boolean;
  /**
   * Requests a lease (the right to send requests to the API for some ten seconds): starts to write a declaration of requests, unless one is
   * being written. {@link leaseBegan$} emits once it is committed.
   */
  readonly requestLease: () => void;
  readonly leaseBegan$: Observable<void>;
}

/**
 * Counts the requests of one quota for the declarations of this process. A declaration says how many more requests may start. Requests that
 * start after it was sent ({@link declarationSent}) and before it is committed ({@link leaseBegan}) already use up that number.
 */
export class DeclaredQuota implements QuotaLedger {
  readonly gate: Gate;
  readonly #capacity: number;
  readonly #isRare: boolean;
  readonly #lease: Lease;
  readonly #pacer: StartPacer;
  readonly #used = usedRequests();
  #inFlight = 0;
  /** Number of requests that may still start in this lease. */
  #remainingStarts = 0;
  #startsSinceDeclared = 0;
  /** Whether a request has waited for a lease since the newest declaration (by which leases begin) was sent. */
  #isWanted = false;

  /**
   * @param capacity Number of requests that the quota allows per minute.
   * @param isRare Whether requests are rare, as logins are. If so, a declaration announces a single request, and only when one waits.
   * Otherwise it announces in advance all requests that the process may send until its lease ends.
   * @param lease The process's right to send requests to the API.
   */
  constructor(capacity: number, isRare: boolean, lease: Lease) {
    this.#capacity = capacity;
    this.#isRare = isRare;
    this.#lease = lease;
    this.#pacer = new StartPacer(capacity);
    this.gate = {
      opensAt: (now, rank) => {
        if (this.#remainingStarts === 0 || !lease.isLeaseValid()) return Infinity;
        return isRare ? now : this.#pacer.opensAt(now, rank);
      },
      want: () => {
        this.#isWanted = true;
        lease.requestLease();
      },
      opened$: lease.leaseBegan$,
    };
  }

  readonly onStart: QuotaLedger['onStart'] = (at) => {
    this.#pacer.take(at);
    this.#remainingStarts -= 1;
    this.#startsSinceDeclared += 1;
    this.#inFlight += 1;
    return (end, isAnswered) => {
      this.#inFlight -= 1;
      this.#used.requestEnded(end, isAnswered);
    };
  };

  count(requests: readonly TimedCount[]): void {
    this.#used.count(requests);
  }

  /** Whether requests have started since the newest declaration was sent. */
  get hasStarted(): boolean {
    return this.#startsSinceDeclared > 0;
  }

  /** Returns this quota's part of a declaration. With `leaseMs` 0 the part is for a final declaration and allows no more starts. */
  declaration(now: number, leaseMs: number): QuotaDeclaration {
    return {
      used: this.#used.ages(now),
      underWay: this.#inFlight,
      more: leaseMs === 0 ? 0 : this.#maxStarts(leaseMs),
    };
  }

  /**
   * Returns the number of requests that the next declaration, with a lease of `leaseMs` ms, allows to start. It includes those that may
   * still start in the current lease if that is valid, because all of them may start before the next declaration is committed.
   */
  #maxStarts(leaseMs: number): number {
    const unusedStarts = this.#lease.isLeaseValid() ? this.#remainingStarts : 0;
    const wanted = this.#isRare ? Number(this.#isWanted) : this.#pacer.maxStarts(leaseMs);
    return Math.min(this.#capacity, Math.max(unusedStarts, wanted));
  }

  declarationSent(): void {
    this.#startsSinceDeclared = 0;
    this.#isWanted = false;
  }

  /**
   * Called when a declaration of this process's requests is committed, which begins a lease. `more`: number of requests declared to start
   * with it.
   */
  leaseBegan(more: number): void {
    this.#remainingStarts = Math.max(0, more - this.#startsSinceDeclared);
  }
}
