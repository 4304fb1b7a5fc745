import { PAUSES } from '../../core/retries.ts';
import {
  defer,
  EMPTY,
  filter,
  ignoreElements,
  lastValueFrom,
  merge,
  Subject,
  take,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike, Subscription } from 'rxjs';
import type { Hooks } from '../../observe/hooks.ts';
import { ledgerText, parseLedger, declarationsIn } from './ledger-record.ts';
import type {
  DatedDeclaration,
  LedgerDeclaration,
  QuotaDeclaration,
  TimedCount,
} from './ledger-record.ts';
import { StartPacer } from './start-pacer.ts';
import { usedRequests } from './used-requests.ts';
import type { AccountLog, PriorEntries } from '../../sinks/ledger/kafka-ledger.ts';
import type { Message } from '../../sinks/sink.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { Gate } from '../../streams/quota/token-bucket.ts';

/**
 * Contents of the ledger when a process claims it: declarations of requests by earlier processes, by guests (processes beside the service),
 * and by other accounts with the same API key.
 */
export interface InheritedLedger {
  /**
   * Newest declaration by the predecessor (previous owner of the account): the requests sent, and those that might still be sent. Undefined
   * if the predecessor left none, or one that can't be parsed.
   */
  readonly sent: DatedDeclaration | undefined;
  /**
   * Recent declarations: the newest one of each guest (a process beside the service, such as `check`), and of each other account that uses
   * the same API key.
   */
  readonly guests: readonly DatedDeclaration[];
  /** Whether `sent` gives the predecessor a lease that may not have expired yet. */
  readonly isLeaseActive: boolean;
  /**
   * Whether the newest entry of the ledger, not counting claims, can't be parsed. The process that wrote it may have sent any number of
   * requests.
   */
  readonly hasUnreadableEntry: boolean;
}

/** Connects a quota's token bucket with the ledger, so that only declared requests start. */
export interface QuotaLedger {
  readonly gate: Gate;
  /**
   * To be called with the time when a request starts. Returns a function to be called with the time when the request ends. `isAnswered`:
   * false if the request may still reach the API. Times are in ms on the scheduler's clock.
   */
  readonly onStart: (at: number) => (end: number, isAnswered: boolean) => void;
  /** Adds requests of other processes to the counted ones. Declarations include them for a minute, so that a successor counts them too. */
  readonly count: (requests: readonly TimedCount[]) => void;
}

/** A monotonic clock and the machine's clock. Leases and permits expire as soon as either of them says so. */
export interface LeaseClocks {
  readonly scheduler: SchedulerLike;
  /** The machine's clock, in ms, which advances while the machine sleeps. Default `Date.now`. */
  readonly wallNow?: () => number;
}

export interface LedgerOptions extends LeaseClocks {
  /** Id of this process. */
  readonly instance: string;
  /** Digest of the API key, by which processes recognize declarations of other accounts that use the same key. */
  readonly apiKeyDigest?: string;
  readonly hooks?: Pick<Hooks, 'onRetry'>;
  /** Messages to be committed with each claim and with the final declaration. Default none. */
  readonly sideMessages?: LedgerSideMessages | undefined;
  /** Returns random numbers in [0, 1) for the jitter of pauses. Default `Math.random`. */
  readonly random?: () => number;
}

/** Messages that are committed in one transaction with a claim of the ledger, or with the final declaration. */
export interface LedgerSideMessages {
  readonly claimMessages: () => readonly Message[];
  readonly releaseMessages: () => readonly Message[];
}

/**
 * Length of a lease, in ms; a renewed one is slightly longer. If it is too small, the process writes many declarations. If it is too large,
 * a successor waits longer after a crash.
 */
export const LEASE_MS = 10_000;
/**
 * How long before its end a lease is renewed, in ms. If it is too small, the lease expires before its renewal when Kafka commits slowly,
 * and requests wait.
 */
export const LEASE_RENEWAL_MARGIN_MS = 1_000;
/**
 * Maximum number of processes listed in a declaration. A process takes seconds to start, so no more than this number can have sent requests
 * in the last minute.
 */
const MAX_WRITERS = 16;
/** End of a lease that has expired or never began. */
const EXPIRED = { at: -Infinity, wallAt: -Infinity };

export function openLedger(options: LedgerOptions): Ledger {
  return new Ledger(options);
}

/**
 * Declares an account's requests in the ledger topic before they are sent. A committed declaration gives the process a lease, and requests
 * start only during a lease.
 *
 * 1. {@link claim} claims the ledger. It is called again after a failure.
 * 2. {@link activate} makes the ledger active, once the inherited requests have been counted.
 * 3. While the ledger is active, a declaration is written when requests wait to start. The lease is renewed as long as requests start.
 * 4. {@link declareFinal}, or an error that no retry can resolve ({@link failed$}), makes the ledger inactive for good.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #quotas = new Map<string, DeclaredQuota>();
  /** Emits when waiting requests should try again to start: when a lease begins or is renewed, and when the ledger becomes active. */
  readonly leaseBegan$ = new Subject<void>();
  readonly #guestDeclarations$ = new Subject<readonly DatedDeclaration[]>();
  readonly #failed$ = new Subject<never>();
  /**
   * Emits, just before a lease begins, the declarations that guests wrote while this process had no lease. Subscribers must count these
   * requests synchronously, because this process sends requests right after.
   */
  readonly guestDeclarations$: Observable<readonly DatedDeclaration[]> = this.#guestDeclarations$;
  /**
   * Never emits. Errors if a declaration fails with an error that no retry can resolve, such as `FENCED`. This process must not send
   * requests after that.
   */
  readonly failed$: Observable<never> = this.#failed$;
  #log: AccountLog | undefined;
  #claims = 0;
  #isActive = false;
  #writers: readonly string[] = [];
  /** When the lease (the right to send requests) expires, by the scheduler's clock and by the machine's clock. */
  #leaseEnd = EXPIRED;
  /** The running attempt to write a declaration, with its retries. */
  #declaring: Subscription | undefined;
  #renewing: Subscription | undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /**
   * Returns the part of the ledger that concerns one quota. To be called for each quota before {@link activate}.
   *
   * @param capacity Maximum number of requests in a minute.
   * @param isRare Whether requests are declared one by one, as for logins. Otherwise those of a whole lease are declared in advance.
   */
  quota(name: string, capacity: number, isRare: boolean): QuotaLedger {
    const quota = new DeclaredQuota(capacity, isRare, this);
    this.#quotas.set(name, quota);
    return quota;
  }

  /** Writes a claim to `log`; returns the ledger's earlier state. No request starts before {@link activate}. Can be repeated on failure. */
  async claim(log: AccountLog): Promise<InheritedLedger> {
    await this.#log?.close();
    this.#log = log;
    const { instance, sideMessages } = this.#options;
    const text = ledgerText({ instance, claim: true, number: ++this.#claims });
    return inheritedFrom(await log.claim(text, sideMessages?.claimMessages()));
  }

  /**
   * Allows requests to start. To be called once the requests that the predecessor and guests declared in the ledger are counted against the
   * quotas.
   */
  activate({ sent }: InheritedLedger): void {
    const earlier = sent?.declaration.writers ?? [];
    this.#writers = [...earlier, this.#options.instance].slice(-MAX_WRITERS);
    this.#isActive = true;
    this.leaseBegan$.next();
  }

  /**
   * Whether the lease is valid. Checked again just before a request is sent: it may have expired since the quota granted the start.
   */
  isLeaseValid(): boolean {
    return this.leaseRemainingMs() > 0;
  }

  /** Remaining time of the lease, in ms; 0 or negative once it has expired. */
  leaseRemainingMs(): number {
    // The clock that has advanced further counts: the monotonic one stops while the machine sleeps, and the machine's may be set back.
    const { at, wallAt } = this.#leaseEnd;
    return Math.min(at - this.#options.scheduler.now(), wallAt - this.#wallNow());
  }

  /** Completes once the lease is valid for at least `ms` more milliseconds. Writes a new declaration if necessary. */
  leaseOfAtLeast(ms: number): Observable<never> {
    return defer(() => {
      if (this.leaseRemainingMs() >= ms) return EMPTY;
      this.requestLease();
      return this.leaseBegan$.pipe(
        filter(() => this.leaseRemainingMs() >= ms),
        take(1),
        ignoreElements(),
      );
    });
  }

  /**
   * Writes the final declaration: no more requests follow, so a successor need not wait for the lease to expire. Does nothing if the ledger
   * is inactive.
   */
  async declareFinal(): Promise<void> {
    if (!this.#isActive) return;
    this.#isActive = false;
    this.#declaring?.unsubscribe();
    this.#renewing?.unsubscribe();
    this.#leaseEnd = EXPIRED;
    const { scheduler, sideMessages } = this.#options;
    const text = ledgerText(this.#declaration(scheduler.now(), 0));
    await this.#log?.append(text, sideMessages?.releaseMessages());
  }

  async close(): Promise<void> {
    await this.#log?.close();
  }

  #wallNow(): number {
    return (this.#options.wallNow ?? Date.now)();
  }

  /**
   * Requests a lease: starts to write a declaration to the ledger, with retries. Does nothing while one is being written, or if the ledger
   * is inactive.
   */
  requestLease(): void {
    if (!this.#isActive || this.#declaring) return;
    const { scheduler, random = Math.random, hooks } = this.#options;
    const declared$ = defer(() => this.#declare()).pipe(
      backoff({
        ...{ scheduler, random },
        ...PAUSES.restart,
        onRetry: (retry) => hooks?.onRetry?.({ what: 'kafka', ...retry }),
      }),
    );
    this.#declaring = declared$.subscribe({
      error: (error: unknown) => {
        this.#isActive = false;
        this.#failed$.error(error);
      },
      complete: () => {
        this.#declaring = undefined;
        this.leaseBegan$.next();
      },
    });
  }

  /** Writes a declaration of this process's requests to the ledger, and begins the lease that it gives. */
  async #declare(): Promise<void> {
    const [now, wallNow] = [this.#options.scheduler.now(), this.#wallNow()];
    const remainingMs = Math.max(0, Math.ceil(this.leaseRemainingMs()));
    const leaseMs = LEASE_MS + Math.min(LEASE_RENEWAL_MARGIN_MS, remainingMs);
    const declaration = this.#declaration(now, leaseMs);
    for (const quota of this.#quotas.values()) quota.declarationSent();
    await this.#log?.append(ledgerText(declaration));
    // Guests that came while there was no lease have declared their own requests, which must be counted. Later guests see
    // this declaration.
    const guests = this.isLeaseValid() ? undefined : await this.#log?.guests();
    if (!this.#isActive) return; // ended by `declareFinal` during the append
    if (guests) this.#guestDeclarations$.next(declarationsIn(guests.guestEntries, guests.at));
    this.#beginLease(declaration, { at: now + leaseMs, wallAt: wallNow + leaseMs });
  }

  #beginLease({ quotas }: LedgerDeclaration, end: typeof EXPIRED): void {
    this.#leaseEnd = end;
    for (const [name, quota] of this.#quotas) quota.leaseBegan(quotas[name]?.more ?? 0);
    this.#renewing?.unsubscribe();
    const delayMs = Math.max(0, this.leaseRemainingMs() - LEASE_RENEWAL_MARGIN_MS);
    this.#renewing = this.#options.scheduler.schedule(() => this.#renew(), delayMs);
  }

  /** Renews the lease if requests have started since the last declaration was sent; otherwise lets it expire. */
  #renew(): void {
    if ([...this.#quotas.values()].some(({ hasStarted }) => hasStarted)) this.requestLease();
  }

  #declaration(now: number, leaseMs: number): LedgerDeclaration {
    const { instance, apiKeyDigest } = this.#options;
    return {
      instance,
      writers: this.#writers,
      blockMs: leaseMs,
      quotas: Object.fromEntries(
        [...this.#quotas].map(([name, quota]) => [name, quota.declaration(now, leaseMs)]),
      ),
      ...(apiKeyDigest !== undefined && { key: apiKeyDigest }),
    };
  }
}

/** Counts the requests of one quota, and computes the part of this process's declarations that concerns this quota. */
class DeclaredQuota implements QuotaLedger {
  readonly gate: Gate;
  readonly #capacity: number;
  readonly #isRare: boolean;
  readonly #ledger: Ledger;
  readonly #pacer: StartPacer;
  readonly #used = usedRequests();
  #inFlight = 0;
  /** Number of requests that may still start in this lease. */
  #remainingStarts = 0;
  #startsSinceDeclared = 0;
  /** Whether a request of this quota has asked for a lease since the newest declaration was sent. */
  #isWanted = false;

  /**
   * @param capacity Number of requests that the quota allows per minute.
   * @param isRare Whether a declaration announces a single request, when one waits, as for logins. Otherwise it announces all requests that
   * the process may start until its lease ends.
   */
  constructor(capacity: number, isRare: boolean, ledger: Ledger) {
    this.#capacity = capacity;
    this.#isRare = isRare;
    this.#ledger = ledger;
    this.#pacer = new StartPacer(capacity);
    this.gate = {
      opensAt: (now, rank) => {
        if (this.#remainingStarts === 0 || !ledger.isLeaseValid()) return Infinity;
        return isRare ? now : this.#pacer.opensAt(now, rank);
      },
      want: () => {
        this.#isWanted = true;
        ledger.requestLease();
      },
      opened$: ledger.leaseBegan$,
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

  /** Returns the number of requests that the next declaration, with a lease of `leaseMs` ms, allows to start. */
  #maxStarts(leaseMs: number): number {
    // All starts that the current lease has left may happen before the next declaration is committed.
    const unusedStarts = this.#ledger.isLeaseValid() ? this.#remainingStarts : 0;
    const wanted = this.#isRare ? Number(this.#isWanted) : this.#pacer.maxStarts(leaseMs);
    return Math.min(this.#capacity, Math.max(unusedStarts, wanted));
  }

  declarationSent(): void {
    this.#startsSinceDeclared = 0;
    this.#isWanted = false;
  }

  /**
   * Called when a declaration of this process's requests is committed, which begins a lease. `more`: number of requests that the
   * declaration allows to start.
   */
  leaseBegan(more: number): void {
    // Requests that started between the sending of the declaration and its commit have used part of `more`.
    this.#remainingStarts = Math.max(0, more - this.#startsSinceDeclared);
  }
}

function inheritedFrom(prior: PriorEntries): InheritedLedger {
  const { entries, claimedAt } = prior;
  const newest = entries.findLast(({ text }) => {
    const entry = parseLedger(text);
    return !entry || !('claim' in entry);
  });
  const [sent] = declarationsIn(newest ? [newest] : [], claimedAt);
  return {
    sent,
    guests: declarationsIn(prior.guestEntries, prior.at),
    isLeaseActive: sent !== undefined && sent.latestSentAt + sent.declaration.blockMs > claimedAt,
    // For example, another version wrote it.
    hasUnreadableEntry: newest !== undefined && !sent,
  };
}

/** Time limit, in ms, for each of the last two steps when a process stops: writing its final declaration, and closing the ledger. */
const FINAL_DECLARATION_TIMEOUT_MS = 3_000;

/** Waits until `work` ends, for `FINAL_DECLARATION_TIMEOUT_MS` at most, and ignores the errors of `work`. */
export async function withinFinalTimeout(
  work: () => Promise<unknown>,
  scheduler: SchedulerLike,
): Promise<void> {
  const done$ = merge(defer(work), timer(FINAL_DECLARATION_TIMEOUT_MS, scheduler)).pipe(take(1));
  await lastValueFrom(done$, { defaultValue: undefined }).catch(() => undefined);
}
