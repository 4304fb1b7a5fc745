import { defer, EMPTY, filter, ignoreElements, Subject, take } from 'rxjs';
import { PAUSES } from '../../core/retries.ts';
import type { Observable, SchedulerLike, Subscription } from 'rxjs';
import type { Hooks } from '../../observe/hooks.ts';
import { ledgerText, parseLedger, declarationsIn } from './ledger-record.ts';
import type {
  QuotaDeclaration,
  LedgerDeclaration,
  DatedDeclaration,
  TimedCount,
} from './ledger-record.ts';
import { startPacer } from './start-pacer.ts';
import type { StartPacer } from './start-pacer.ts';
import type { AccountLog, GuestEntries } from '../../sinks/ledger/kafka-ledger.ts';
import type { Message } from '../../sinks/sink.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { Gate, TokenBucketOptions } from '../../streams/quota/token-bucket.ts';
import { usedRequests } from './used-requests.ts';
import type { UsedRequests } from './used-requests.ts';

/** State of the ledger when a process claims it: what other processes have declared. */
export interface InheritedLedger {
  /** Newest declaration of requests by the predecessor; undefined if there is none. */
  readonly declaration: LedgerDeclaration | undefined;
  /** Latest time at which the predecessor's declaration can have been sent, in ms on this process's clock. */
  readonly latestSentAt: number;
  /**
   * Declarations of requests by guests (processes beside the service) while the account had no owner, and those of other accounts that use
   * the same API key.
   */
  readonly guests: readonly DatedDeclaration[];
  /**
   * Whether the lease of the predecessor's declaration has not expired: the predecessor wrote no final declaration, and may still send
   * requests.
   */
  readonly isLeaseActive: boolean;
  /** Whether the newest entry of the ledger is unreadable, as from another version: an unknown number of requests may have been sent. */
  readonly hasUnreadableEntry: boolean;
}

/** The part of the ledger that concerns one quota. */
export interface QuotaLedger {
  readonly gate: Gate;
  readonly onStart: NonNullable<TokenBucketOptions['onStart']>;
  /** Adds requests of other processes to the next declaration. */
  readonly count: (requests: readonly TimedCount[]) => void;
}

/**
 * Declares an account's requests in the ledger topic before they are sent. A request may start only while a committed declaration allows
 * it: that is the lease of the process.
 */
export interface Ledger {
  /**
   * Returns the part of the ledger that concerns one quota. To be called for each quota before {@link activate}.
   *
   * @param capacity Maximum number of requests in a minute.
   * @param isRare Whether each request is declared on demand, one by one, as for logins, instead of a lease's worth in advance.
   */
  readonly quota: (name: string, capacity: number, isRare: boolean) => QuotaLedger;
  /** Claims the ledger through `log`. No request starts before {@link activate}. May be called again after a failure. */
  readonly claim: (log: AccountLog) => Promise<InheritedLedger>;
  /**
   * Allows requests to start; to be called once the inherited requests are counted. From then on a declaration is written whenever a
   * request waits to start.
   */
  readonly activate: (inherited: InheritedLedger) => void;
  /** Whether the lease has not expired, so that a request that has started may be sent. */
  readonly isLeaseValid: () => boolean;
  /** Remaining time of the lease, in ms; 0 or negative once it has expired. */
  readonly leaseRemainingMs: () => number;
  /** Completes once the lease lasts for at least `ms` more. Writes a new declaration if necessary. */
  readonly leaseOfAtLeast: (ms: number) => Observable<never>;
  /**
   * Declarations of requests that guests (processes beside the service) wrote while this process had no lease. Must be counted
   * synchronously: requests start right after the emission.
   */
  readonly guestDeclarations$: Observable<readonly DatedDeclaration[]>;
  /** Errors if this process must not send any more requests, as with `FENCED`. */
  readonly failed$: Observable<never>;
  /**
   * Writes the final declaration: the requests that were sent, and that no more will be, so that a successor need not wait for the lease to
   * expire.
   */
  readonly declareFinal: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface LedgerOptions {
  /** Id of this process. */
  readonly instance: string;
  /** Digest of the API key, by which processes recognize declarations of other accounts that use the same key. */
  readonly apiKeyDigest?: string;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, in ms, which advances while the machine sleeps. Default `Date.now`. */
  readonly wallNow?: () => number;
  readonly hooks?: Pick<Hooks, 'onRetry'>;
  /** Messages to be committed with each claim and with the final declaration. Default none. */
  readonly sideMessages?: LedgerSideMessages | undefined;
  /** Returns random numbers in [0, 1) for the jitter of pauses. Default `Math.random`. */
  readonly random?: () => number;
}

/** Messages written by the ledger's producer, so that a fenced process can't write them. */
export interface LedgerSideMessages {
  readonly claimMessages: () => readonly Message[];
  readonly releaseMessages: () => readonly Message[];
}

/** Length of a lease, in ms. Too small: many declarations. Too large: a successor waits longer after a crash. */
export const LEASE_MS = 10_000;
/** How long before a lease expires it is renewed, in ms. Too small: requests wait while a slow Kafka commits. */
export const LEASE_RENEWAL_MARGIN_MS = 1_000;
/**
 * Maximum number of processes listed in a declaration of requests. More can't have sent requests in the last minute, as each takes seconds
 * to start.
 */
const MAX_WRITERS = 16;

interface QuotaState {
  readonly capacity: number;
  readonly isRare: boolean;
  readonly pace: StartPacer;
  readonly used: UsedRequests;
  inFlight: number;
  /** Number of requests that may still start in this lease. */
  remainingStarts: number;
  /** Number of requests started since the newest declaration was sent. */
  startsSinceDeclared: number;
  isWanted: boolean;
}

export function openLedger(options: LedgerOptions): Ledger {
  const {
    instance,
    apiKeyDigest,
    scheduler,
    wallNow = () => Date.now(),
    hooks = {},
    sideMessages,
  } = options;
  const { random = Math.random } = options;
  const parts = new Map<string, QuotaState>();
  let log: AccountLog | undefined;
  const opened$ = new Subject<void>();
  const guestDeclarations$ = new Subject<readonly DatedDeclaration[]>();
  const failed$ = new Subject<never>();
  let writers: readonly string[] = [instance];
  /** When the lease expires, by the scheduler's clock and by the machine's. */
  let lease = { end: -Infinity, wallEnd: -Infinity };
  let claims = 0;
  let hasBegun = false;
  let declaring: Subscription | undefined;
  let renewing: Subscription | undefined;

  // Takes the clock that has advanced further: the monotonic clock stops while the machine sleeps, and the machine's clock may be set back.
  const left = () => Math.min(lease.end - scheduler.now(), lease.wallEnd - wallNow());
  const isRunning = () => left() > 0;

  const recordOf = (now: number, blockMs: number): LedgerDeclaration => ({
    instance,
    writers,
    blockMs,
    quotas: Object.fromEntries(
      [...parts].map(([name, part]) => [name, declared(part, now, blockMs)]),
    ),
    ...(apiKeyDigest !== undefined && { key: apiKeyDigest }),
  });
  const declared = (part: QuotaState, now: number, blockMs: number): QuotaDeclaration => ({
    used: part.used.ages(now),
    underWay: part.inFlight,
    more: blockMs === 0 ? 0 : moreOf(part, blockMs),
  });
  /**
   * Number of request starts to declare: at least those left of the current lease, which may be used until the new declaration is
   * committed.
   */
  const moreOf = (part: QuotaState, blockMs: number): number => {
    const unusedStarts = isRunning() ? part.remainingStarts : 0;
    const wanted = part.isRare ? Number(part.isWanted) : part.pace.maxStarts(blockMs);
    return Math.min(part.capacity, Math.max(unusedStarts, wanted));
  };
  const declare = async (): Promise<void> => {
    const [now, wall] = [scheduler.now(), wallNow()];
    const blockMs = LEASE_MS + Math.min(LEASE_RENEWAL_MARGIN_MS, Math.max(0, Math.ceil(left())));
    const record = recordOf(now, blockMs);
    for (const part of parts.values()) {
      part.startsSinceDeclared = 0;
      part.isWanted = false;
    }
    await log?.append(ledgerText(record));
    // Guests that came while there was no lease have declared their own requests, which must be counted. Later guests see
    // this declaration.
    const guests = log && !isRunning() ? await log.guests() : undefined;
    if (!hasBegun) return; // ended by `declareFinal` during the append
    if (guests) guestDeclarations$.next(guestDeclarationsIn(guests));
    lease = { end: now + blockMs, wallEnd: wall + blockMs };
    for (const [name, part] of parts) {
      part.remainingStarts = Math.max(
        0,
        (record.quotas[name]?.more ?? 0) - part.startsSinceDeclared,
      );
    }
    renewing?.unsubscribe();
    renewing = scheduler.schedule(renew, Math.max(0, left() - LEASE_RENEWAL_MARGIN_MS));
  };
  const go = (): void => {
    if (!hasBegun || declaring) return;
    const declared$ = defer(declare).pipe(
      backoff({
        ...{ scheduler, random },
        ...PAUSES.restart,
        onRetry: (retry) => hooks.onRetry?.({ what: 'kafka', ...retry }),
      }),
    );
    declaring = declared$.subscribe({
      error: (error: unknown) => {
        hasBegun = false;
        failed$.error(error);
      },
      complete: () => {
        declaring = undefined;
        opened$.next();
      },
    });
    if (declaring.closed) declaring = undefined;
  };
  /** Renews the lease if requests have started in it. Otherwise the next request causes a declaration. */
  const renew = (): void => {
    if ([...parts.values()].some(({ startsSinceDeclared }) => startsSinceDeclared > 0)) go();
  };

  return {
    quota: (name, capacity, isRare) => {
      const part: QuotaState = {
        ...{ capacity, isRare, pace: startPacer(capacity), used: usedRequests() },
        ...{ inFlight: 0, remainingStarts: 0, startsSinceDeclared: 0, isWanted: false },
      };
      parts.set(name, part);
      return {
        gate: {
          opensAt: (now, rank) => {
            if (part.remainingStarts === 0 || !isRunning()) return Infinity;
            return isRare ? now : part.pace.opensAt(now, rank);
          },
          want: () => {
            part.isWanted = true;
            go();
          },
          opened$,
        },
        onStart: (at) => {
          part.pace.take(at);
          part.remainingStarts -= 1;
          part.startsSinceDeclared += 1;
          part.inFlight += 1;
          return (end, isAnswered) => {
            part.inFlight -= 1;
            part.used.requestEnded(end, isAnswered);
          };
        },
        count: part.used.count,
      };
    },
    claim: async (claimed) => {
      await log?.close();
      log = claimed;
      const text = ledgerText({ instance, claim: true, number: ++claims });
      const prior = await log.claim(text, sideMessages?.claimMessages());
      const { entries, claimedAt } = prior;
      const newest = entries
        .map(({ text, ageMs }) => ({ entry: parseLedger(text), ageMs }))
        .findLast(({ entry }) => !entry || !('claim' in entry));
      const { entry, ageMs = 0 } = newest ?? {};
      const declaration = entry && 'quotas' in entry ? entry : undefined;
      const latestSentAt = claimedAt - ageMs;
      const isLeaseActive =
        declaration !== undefined && latestSentAt + declaration.blockMs > claimedAt;
      const hasUnreadableEntry = newest !== undefined && !declaration;
      return {
        declaration,
        latestSentAt,
        isLeaseActive,
        guests: guestDeclarationsIn(prior),
        hasUnreadableEntry,
      };
    },
    activate: ({ declaration }) => {
      writers = [...(declaration?.writers ?? []), instance].slice(-MAX_WRITERS);
      hasBegun = true;
      opened$.next();
    },
    isLeaseValid: isRunning,
    leaseRemainingMs: left,
    leaseOfAtLeast: (ms) =>
      defer(() => {
        if (left() >= ms) return EMPTY;
        go();
        return opened$.pipe(
          filter(() => left() >= ms),
          take(1),
          ignoreElements(),
        );
      }),
    guestDeclarations$,
    failed$,
    declareFinal: async () => {
      if (!hasBegun) return;
      hasBegun = false;
      declaring?.unsubscribe();
      renewing?.unsubscribe();
      lease = { end: -Infinity, wallEnd: -Infinity };
      await log?.append(ledgerText(recordOf(scheduler.now(), 0)), sideMessages?.releaseMessages());
    },
    close: async () => {
      await log?.close();
    },
  };
}

/**
 * Returns the declarations of requests among ledger entries of guests (processes that use the API key beside the service). Skips claims and
 * unreadable entries.
 */
function guestDeclarationsIn({ guestEntries, at }: GuestEntries): DatedDeclaration[] {
  return guestEntries.flatMap((entry) => declarationsIn(entry, at));
}
