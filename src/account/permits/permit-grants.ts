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
  race,
  timer,
} from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Hooks } from '../../observe/hooks.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { LATE_MS } from '../ledger/ledger-record.ts';
import type { GuestLane, Quotas } from '../quotas.ts';
import type { SignalTopic } from '../../sinks/signals/kafka-signals.ts';
import { signalMessage } from '../../sinks/signals/signals.ts';
import type { PermitsAck, PermitsRequest } from '../../sinks/signals/signals.ts';
import { during } from '../../streams/quota/token-bucket.ts';

export interface PermitGrantsOptions {
  readonly topic: Pick<SignalTopic, 'name' | 'send'>;
  readonly account: string;
  /** Names this process. */
  readonly instance: string;
  readonly quota: Pick<Quotas, 'guests'>;
  readonly ledger: Pick<Ledger, 'leftMs' | 'lasting'>;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, ms. Default `Date.now`. */
  readonly wallNow?: () => number;
  readonly hooks: Pick<Hooks, 'onSignalsFailed'>;
}

/** How long an answer waits for permits, ms: it tells of those that are there by then. */
const WITHIN_MS = 2_000;
/** The block that permits are of runs for so long at the least, ms, if it can be had in time. */
const LEAST_MS = 5_000;
/** Nobody waits any longer for the answer to a request of so long ago, by two machines' clocks, ms. */
const OLD_MS = 30_000;
/** Requests whose permits are under way: more wait. */
const AT_ONCE = 32;

/**
 * Answers requests for permits: each is a start of this process's own quotas, and counts as a request under way for as long
 * as the asker may use it. That is no longer than the block that lets this process ask itself: whoever takes over from it
 * counts those requests with its own. Emits nothing, and goes on after every error.
 */
export function permitGrants(
  options: PermitGrantsOptions,
): (requests$: Observable<PermitsRequest>) => Observable<never> {
  const {
    topic,
    account,
    instance,
    quota,
    ledger,
    scheduler,
    wallNow = () => Date.now(),
  } = options;
  const { hooks } = options;

  const ackOf = (request: PermitsRequest, permits: readonly Permit[]): PermitsAck => {
    const granted: Record<string, number> = {};
    for (const { name, isTaken } of permits)
      if (isTaken()) granted[name] = (granted[name] ?? 0) + 1;
    const isShort = permits.some(({ isTaken }) => !isTaken());
    const unknown = Object.keys(request.quotas).filter((name) => !quota.guests(name));
    return {
      ...{ type: 'permits-ack', id: request.id, account, instance, granted },
      for_ms: Math.max(0, Math.floor(ledger.leftMs())),
      message:
        unknown.length > 0
          ? `no such quota: ${unknown.join(', ')}`
          : isShort
            ? 'no more are free'
            : null,
      at: new Date(wallNow()).toISOString(),
    };
  };
  const answer = (request: PermitsRequest): Observable<never> =>
    defer(() => {
      const permits = Object.entries(request.quotas).flatMap(([name, count]) => {
        const lane = quota.guests(name);
        return lane ? Array.from({ length: count }, () => take(name, lane)) : [];
      });
      /** Until then they may be used, and arrive. */
      let until = -Infinity;
      const all$ = merge(ledger.lasting(LEAST_MS), ...permits.map(({ taken$ }) => taken$));
      const enough$ = race(all$.pipe(endWith(undefined)), timer(WITHIN_MS, scheduler));
      const told$ = enough$.pipe(
        mergeMap(() => {
          const ack = ackOf(request, permits);
          for (const permit of permits) if (!permit.isTaken()) permit.release();
          until = scheduler.now() + ack.for_ms + LATE_MS;
          // A process that is killed here leaves nothing else to the next one of its folder.
          for (const { lane, isTaken } of permits)
            if (isTaken()) lane.keep([{ at: until, count: 1 }]);
          return topic.send(signalMessage(topic.name, ack));
        }),
        mergeMap(() => timer(Math.max(0, until - scheduler.now()), scheduler)),
        ignoreElements(),
      );
      return told$.pipe(
        catchError((error: unknown) => {
          hooks.onSignalsFailed?.({ error, delayMs: 0 });
          // It may have been sent all the same.
          return timer(Math.max(0, until - scheduler.now()), scheduler).pipe(ignoreElements());
        }),
        finalize(() => {
          for (const { lane, isTaken, release } of permits) {
            // Those that this process does not wait for, as it ends.
            if (isTaken() && until > scheduler.now()) lane.count([{ at: until, count: 1 }]);
            release();
          }
        }),
      );
    });

  return (requests$) =>
    requests$.pipe(
      mergeMap((request) => {
        const isOld = wallNow() - Date.parse(request.requested_at) > OLD_MS;
        return isOld ? EMPTY : answer(request);
      }, AT_ONCE),
    );
}

/** A start that is given away, or waited for. */
interface Permit {
  readonly name: string;
  readonly lane: GuestLane;
  readonly isTaken: () => boolean;
  /** Completes when it is. */
  readonly taken$: Observable<never>;
  /** It is under way no longer, or not waited for. */
  readonly release: () => void;
}

function take(name: string, lane: GuestLane): Permit {
  const taken$ = new AsyncSubject<never>();
  let isTaken = false;
  const used$ = new Observable<never>(() => {
    isTaken = true;
    taken$.complete();
  });
  const held = during(lane.limit, used$).subscribe();
  return { name, lane, isTaken: () => isTaken, taken$, release: () => held.unsubscribe() };
}
