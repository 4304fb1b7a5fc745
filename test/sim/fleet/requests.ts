import {
  defer,
  filter,
  ignoreElements,
  merge,
  repeat,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import type { Lanes } from '../../../src/account/quotas.ts';
import { RESOURCES } from '../../../src/sandbox/resources.ts';
import { during } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import type { Traffic, TrafficOptions } from './traffic.ts';

/** A request that is given up: later than that it has arrived. */
const MAX_WAY_MS = 900;
const LOGIN_EVERY_MS = 25_000;

/** Requests without records: as often as a quiet account polls, or a busy one may. */
export function requests(options: TrafficOptions): Traffic {
  const { server, account, serving, ledger, quota } = options;
  const { instance, time, scheduler, chance } = server;
  const { config, stop$, hooks } = serving;
  let isOver = false;

  /** Whether it was answered. */
  const ask = async (endpoint: string): Promise<boolean> => {
    // A connection is made, at times for long.
    await time.sleep(chance.is(0.02) ? chance.below(8_000) : chance.below(20));
    await server.awake();
    if (isOver || !ledger.isLeaseValid()) return false;
    account.sent.push({ at: time.now(), endpoint, instance });
    const isLost = server.isDropped();
    await time.sleep(chance.is(0.05) ? chance.below(MAX_WAY_MS) : 5 + chance.below(60));
    if (!isLost) account.arrive({ at: time.now(), endpoint, instance });
    await time.sleep(isLost ? 2_000 : 5 + chance.below(100));
    await server.awake();
    const status = isLost ? undefined : 200;
    hooks.onRequest?.({ what: endpoint, status, elapsedMs: 0, waitedMs: 0 });
    return !isLost;
  };
  const asking = (endpoint: string, limit: Limit, pauseMs: number): Observable<boolean> => {
    const once$ = defer(() => ask(endpoint));
    const again = { delay: () => timer(Math.max(1, pauseMs), scheduler) };
    return defer(() => during(limit, once$)).pipe(repeat(again));
  };
  const reading = (lanes: Lanes): Observable<boolean> =>
    account.isBusy
      ? merge(
          asking('orders', lanes.poll, lanes.pollSpacingMs('first-read')),
          asking('orders', lanes.initialSnapshot, 0),
          asking('orders', lanes.sweep, 0),
        )
      : asking('orders', lanes.poll, config.poll.intervalMs ?? 0);
  let isReady = false;
  const lists$ = defer(() => reading(quota.lanes('orders', true))).pipe(
    tap((isAnswered) => {
      if (isAnswered && !isReady) hooks.onReady?.({ resource: 'orders' });
      isReady ||= isAnswered;
    }),
  );
  const snapshots$ = account.snapshots$.pipe(
    tap((running) =>
      RESOURCES.forEach((resource, k) =>
        hooks.onProgress?.({ resource, read: 0, total: 1, done: k >= running }),
      ),
    ),
    ignoreElements(),
  );
  const logins$ = asking('login', quota.login, LOGIN_EVERY_MS);
  return {
    loggedIn$: asking('login', quota.login, 1_000).pipe(filter(Boolean), take(1)),
    work$: merge(
      lists$,
      snapshots$,
      timer(LOGIN_EVERY_MS, scheduler).pipe(switchMap(() => logins$)),
    ).pipe(takeUntil(stop$)),
    close: () => {
      isOver = true;
      return Promise.resolve();
    },
  };
}
