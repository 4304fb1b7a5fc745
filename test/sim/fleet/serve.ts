import {
  concat,
  defer,
  filter,
  ignoreElements,
  lastValueFrom,
  merge,
  repeat,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { openLedger } from '../../../src/account/ledger/ledger.ts';
import { quotas } from '../../../src/account/quotas.ts';
import type { Lanes } from '../../../src/account/quotas.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { Serving } from '../../../src/fleet/account-work.ts';
import type { AccountLog } from '../../../src/sinks/ledger/kafka-ledger.ts';
import type { Message } from '../../../src/sinks/sink.ts';
import { backoff } from '../../../src/streams/flow/backoff.ts';
import { during } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import type { Chance } from '../chance.ts';
import { startsIn, writerIn } from '../sim-store.ts';
import type { SimFolder } from '../sim-store.ts';
import type { SimTime } from '../sim-time.ts';
import type { SimAccount, SimServing } from './sim-account.ts';
import type { SimFleetTopic } from './sim-fleet-topic.ts';
import type { SimLine } from './sim-line.ts';

/** An instance, as the serving of an account needs it. */
export interface Server {
  readonly instance: string;
  readonly time: SimTime;
  readonly scheduler: SchedulerLike;
  readonly chance: Chance;
  readonly topic: SimFleetTopic;
  readonly line: SimLine;
  readonly folder: Pick<SimFolder, 'starts' | 'writer'>;
  readonly wallNow: () => number;
  /** Resolves when the instance goes on; never where it is dead. */
  readonly awake: () => Promise<void>;
  /** Whether requests are dropped on their way to the API. */
  readonly isDropped: () => boolean;
}

/** As in `serve-account.ts`. */
const MAX_PAUSE_MS = 5_000;
const SETTLE_WITHIN_MS = 3_000;
/** A request that is given up: later than that it has arrived. */
const MAX_WAY_MS = 900;
const LOGIN_EVERY_MS = 25_000;

/**
 * Serves an account as `serveAccount` does, with the real ledger and quotas: claims it, logs in, asks its list until `stop$`,
 * and settles the ledger. There are no records: requests are all that comes of it.
 */
export async function serve(server: Server, account: SimAccount, serving: Serving): Promise<void> {
  const { instance, time, scheduler, chance, folder } = server;
  const { config, stop$, hooks, beside } = serving;
  const random = chance.next;
  const told: SimServing = {
    ...{ instance, startedAt: time.now(), claimedAt: undefined, log: undefined, endedAt: Infinity },
  };
  account.servings.push(told);
  const ledger = openLedger({ instance, scheduler, wallNow: server.wallNow, beside, random });
  const quota = quotas({
    ...{ config, scheduler, ledger, instance },
    startsOf: startsIn(folder),
    writer: writerIn(folder),
  });
  let isOver = false;

  const takenOver$ = defer(async () => {
    const log = logOf(server, account);
    const inherited = await ledger.claim(recorded(log, server, account));
    told.log = log;
    told.claimedAt = time.now();
    if (isOver) throw new CellarstreamError('COMMIT_FAILED', 'it has ended meanwhile');
    quota.inherit(inherited);
    ledger.begin(inherited);
  }).pipe(backoff({ maxMs: MAX_PAUSE_MS, scheduler, random }));

  /** Whether it was answered. */
  const ask = async (endpoint: string): Promise<boolean> => {
    // A connection is made, at times for long.
    await time.sleep(chance.is(0.02) ? chance.below(8_000) : chance.below(20));
    await server.awake();
    if (isOver || !ledger.isRunning()) return false;
    account.sent.push({ at: time.now(), endpoint, instance });
    const isLost = server.isDropped();
    await time.sleep(chance.is(0.05) ? chance.below(MAX_WAY_MS) : 5 + chance.below(60));
    if (!isLost) account.arrived.push({ at: time.now(), endpoint, instance });
    await time.sleep(isLost ? 2_000 : 5 + chance.below(100));
    await server.awake();
    return !isLost;
  };
  const again = (pauseMs: number) => ({
    delay: () => timer(Math.max(1, pauseMs), scheduler),
  });
  const asking = (endpoint: string, limit: Limit, pauseMs: number): Observable<boolean> =>
    defer(() =>
      during(
        limit,
        defer(() => ask(endpoint)),
      ),
    ).pipe(repeat(again(pauseMs)));
  const reading = (lanes: Lanes): Observable<boolean> =>
    account.isBusy
      ? merge(
          asking('orders', lanes.poll, lanes.spacingMs('first-read')),
          asking('orders', lanes.firstRead, 0),
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
  const logins$ = asking('login', quota.login, LOGIN_EVERY_MS);
  const loggedIn$ = asking('login', quota.login, 1_000).pipe(filter(Boolean), take(1));
  const served$ = concat(takenOver$.pipe(ignoreElements()), loggedIn$).pipe(
    switchMap(() => merge(lists$, timer(LOGIN_EVERY_MS, scheduler).pipe(switchMap(() => logins$)))),
  );

  try {
    await lastValueFrom(merge(served$, ledger.failed$).pipe(takeUntil(stop$)), {
      defaultValue: undefined,
    });
  } finally {
    isOver = true;
    const settled$ = merge(defer(ledger.settle), timer(SETTLE_WITHIN_MS, scheduler)).pipe(take(1));
    await lastValueFrom(settled$, { defaultValue: undefined }).catch(() => undefined);
    await ledger.close();
    quota.close();
    told.endedAt = time.now();
  }
}

function logOf({ time, line, topic }: Server, { name, ledger }: SimAccount): AccountLog {
  const ways = {
    step: (what = 'the ledger') => line.step(`${what} ${name}`),
    isCutOff: line.isCutOff,
    publish: (beside: readonly Message[]) => beside.forEach((message) => topic.append(message)),
  };
  return ledger.of(ways, () => time.now());
}

/** The same, of which is kept what was declared when. */
function recorded(log: AccountLog, { instance, time }: Server, account: SimAccount): AccountLog {
  return {
    ...log,
    append: async (text, beside) => {
      const declaration = { instance, text, sentAt: time.now(), ackedAt: Infinity };
      account.declarations.push(declaration);
      await log.append(text, beside);
      declaration.ackedAt = time.now();
    },
  };
}
