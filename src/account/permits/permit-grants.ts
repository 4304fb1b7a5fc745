import {
  AsyncSubject,
  catchError,
  defer,
  EMPTY,
  endWith,
  finalize,
  ignoreElements,
  merge,
  mergeMap,
  Observable,
  of,
  race,
  timer,
} from 'rxjs';
import type { Subscription } from 'rxjs';
import type { Hooks } from '../../observe/hooks.ts';
import type { LeaseClocks, Ledger } from '../ledger/ledger.ts';
import { MAX_REQUEST_DELAY_MS } from '../ledger/ledger-record.ts';
import type { Quota } from '../quota.ts';
import type { Quotas } from '../quotas.ts';
import type { SignalTopic } from '../../sinks/signals/kafka-signals.ts';
import { signalMessage } from '../../sinks/signals/signals.ts';
import type { PermitsAck, PermitsRequest } from '../../sinks/signals/signals.ts';
import { during } from '../../streams/quota/token-bucket.ts';

export interface PermitGrantsOptions extends LeaseClocks {
  readonly topic: Pick<SignalTopic, 'name' | 'send'>;
  readonly account: string;
  readonly instance: string;
  readonly quota: Pick<Quotas, 'guestQuota'>;
  readonly ledger: Pick<Ledger, 'leaseRemainingMs' | 'leaseOfAtLeast'>;
  readonly hooks: Pick<Hooks, 'onSignalsFailed'>;
}

/**
 * How long the service waits for the quota to grant all permits that a guest requested, in ms; then it grants the available ones. If it is
 * too large, the guest gives up before it gets the response.
 */
const GRANT_TIMEOUT_MS = 2_000;
/**
 * Minimum remaining time of this process's lease when permits are granted, in ms: with less, the lease is renewed first. If it is too
 * small, permits expire unused, because they expire with the lease.
 */
const MIN_LEASE_MS = 5_000;
/**
 * Maximum age of a request for permits, in ms; older ones are ignored, because the guest has given up waiting. It allows for a difference
 * between the guest's clock and this machine's.
 */
const MAX_REQUEST_AGE_MS = 30_000;
/** Maximum number of requests for permits that are handled at the same time; further ones wait. */
const MAX_CONCURRENT_GRANTS = 32;

/**
 * Returns an operator that responds to guests' requests for permits. Each granted permit counts as a request in flight of this process
 * until it expires with the lease. The operator emits nothing, and continues after every error.
 */
export function permitGrants(
  options: PermitGrantsOptions,
): (requests$: Observable<PermitsRequest>) => Observable<never> {
  const { topic, account, instance, quota, ledger, scheduler, hooks } = options;
  const { wallNow = () => Date.now() } = options;

  const ackOf = (request: PermitsRequest, permits: readonly QuotaPermit[]): PermitsAck => {
    const granted: Record<string, number> = {};
    for (const { name } of permits.filter((permit) => permit.isGranted))
      granted[name] = (granted[name] ?? 0) + 1;
    const unknown = Object.keys(request.quotas).filter((name) => !quota.guestQuota(name));
    const shortage = permits.every((permit) => permit.isGranted)
      ? null
      : 'the quota has no permits left for other processes';
    return {
      ...{ type: 'permits-ack', id: request.id, account, instance, granted },
      for_ms: Math.max(0, Math.floor(ledger.leaseRemainingMs())),
      message:
        unknown.length > 0
          ? `this service has no quota with the name ${unknown.join(', ')}`
          : shortage,
      at: new Date(wallNow()).toISOString(),
    };
  };
  const grant = (request: PermitsRequest): Observable<never> =>
    defer(() => {
      const permits = Object.entries(request.quotas).flatMap(([name, count]) => {
        const lane = quota.guestQuota(name);
        return lane ? Array.from({ length: count }, () => new QuotaPermit(name, lane)) : [];
      });
      /** Latest time at which a request with one of the granted permits can reach the API, in ms on the scheduler's clock. */
      let until = -Infinity;
      const expired$ = defer(() => timer(Math.max(0, until - scheduler.now()), scheduler));
      const all$ = merge(
        ledger.leaseOfAtLeast(MIN_LEASE_MS),
        ...permits.map(({ granted$ }) => granted$),
      );
      // After the time limit the available permits are granted, even if the lease has not been renewed.
      const enough$ = race(all$.pipe(endWith(undefined)), timer(GRANT_TIMEOUT_MS, scheduler));
      return enough$.pipe(
        mergeMap(() => {
          const ack = ackOf(request, permits);
          for (const permit of permits) if (!permit.isGranted) permit.release();
          until = scheduler.now() + ack.for_ms + MAX_REQUEST_DELAY_MS;
          // Stored first: if this process is killed now, the next one using this state folder still counts the permits.
          for (const permit of permits)
            if (permit.isGranted) permit.quota.storeForSuccessor([{ at: until, count: 1 }]);
          return topic.send(signalMessage(topic.name, ack));
        }),
        catchError((error: unknown) => {
          hooks.onSignalsFailed?.({ error, delayMs: 0 });
          return of(undefined); // the acknowledgement may have been sent despite the error, so the permits count
        }),
        mergeMap(() => expired$),
        ignoreElements(),
        finalize(() => {
          for (const permit of permits) {
            // The process ends before these permits expire: they stay counted.
            if (permit.isGranted && until > scheduler.now())
              permit.quota.countOthers([{ at: until, count: 1 }]);
            permit.release();
          }
        }),
      );
    });

  return (requests$) =>
    requests$.pipe(
      mergeMap((request) => {
        const isOld = wallNow() - Date.parse(request.requested_at) > MAX_REQUEST_AGE_MS;
        return isOld ? EMPTY : grant(request);
      }, MAX_CONCURRENT_GRANTS),
    );
}

/**
 * A permit: the right of a guest (a process that uses the API key beside the service) to send one request. It is granted or waits for the
 * quota.
 */
class QuotaPermit {
  readonly name: string;
  readonly quota: Quota;
  /** Completes once the permit is granted. */
  readonly granted$ = new AsyncSubject<never>();
  isGranted = false;
  readonly #start: Subscription;

  constructor(name: string, quota: Quota) {
    this.name = name;
    this.quota = quota;
    const use$ = new Observable<never>(() => {
      this.isGranted = true;
      this.granted$.complete();
    });
    this.#start = during(quota.guests, use$).subscribe();
  }

  /** Ends the permit (a guest's right to one request): a granted one no longer counts as in flight, a pending one is withdrawn. */
  release(): void {
    this.#start.unsubscribe();
  }
}
