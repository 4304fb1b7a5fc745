import { PAUSES } from '../../../src/core/retries.ts';
import { defer, delay, lastValueFrom, merge, switchMap, take, takeUntil, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { openLedger } from '../../../src/account/ledger/ledger.ts';
import { quotas } from '../../../src/account/quotas.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { ServeOptions } from '../../../src/fleet/account-work.ts';
import type { AccountLog } from '../../../src/sinks/ledger/kafka-ledger.ts';
import type { Message } from '../../../src/sinks/sink.ts';
import { backoff } from '../../../src/streams/flow/backoff.ts';
import type { Chance } from '../../support/chance.ts';
import { startsIn, writerIn } from '../sim-store.ts';
import type { SimFolder } from '../sim-store.ts';
import type { SimTime } from '../sim-time.ts';
import { requests } from './requests.ts';
import type { SimAccount, SimServing } from './sim-account.ts';
import type { SimFleetTopic } from './sim-fleet-topic.ts';
import type { SimLine } from './sim-line.ts';
import { tasks } from './tasks.ts';

/** An instance, as the serving of an account needs it. */
export interface Server {
  readonly instance: string;
  readonly time: SimTime;
  readonly scheduler: SchedulerLike;
  readonly chance: Chance;
  readonly topic: SimFleetTopic;
  readonly line: SimLine;
  /** Which it serves. */
  readonly account: string;
  readonly folder: SimFolder;
  readonly wallNow: () => number;
  /** Resolves when the instance goes on; never where it is dead. */
  readonly awake: () => Promise<void>;
  /** Whether requests are dropped on their way to the API. */
  readonly isDropped: () => boolean;
}

const STOP_WITHIN_MS = 8_000;
const SETTLE_WITHIN_MS = 3_000;
/**
 * Serves an account as `serveAccount` does, with the real ledger and quotas: claims it, logs in, asks its list until `stop$`,
 * and settles the ledger.
 */
export async function serve(
  server: Server,
  account: SimAccount,
  serving: ServeOptions,
): Promise<void> {
  const { instance, time, scheduler, chance, folder } = server;
  const { config, stop$, sideMessages } = serving;
  const random = chance.next;
  const told: SimServing = {
    ...{ instance, startedAt: time.now(), claimedAt: undefined, log: undefined, endedAt: Infinity },
  };
  account.servings.push(told);
  const ledger = openLedger({
    instance,
    scheduler,
    wallNow: server.wallNow,
    sideMessages,
    random,
  });
  const quota = quotas({
    ...{ config, scheduler, ledger, instance },
    storedStartsOf: startsIn(folder),
    writer: writerIn(folder),
  });
  let isOver = false;

  const takenOver$ = defer(async () => {
    const log = logOf(server, account);
    const inherited = await ledger.claim(recorded(log, server, account));
    told.log = log;
    told.claimedAt = time.now();
    if (isOver)
      throw new CellarstreamError(
        'COMMIT_FAILED',
        'the service was stopped before it could begin to serve the account',
      );
    quota.inherit(inherited);
    ledger.activate(inherited);
  }).pipe(backoff({ ...PAUSES.restart, scheduler, random }));

  const options = { server, account, serving, ledger, quota };
  const traffic = account.data ? tasks(account.data, options) : requests(options);
  const served$ = takenOver$.pipe(
    takeUntil(stop$),
    switchMap(() => traffic.loggedIn$.pipe(takeUntil(stop$))),
    switchMap(() => traffic.work$),
  );
  try {
    const failed$ = ledger.failed$.pipe(takeUntil(stop$));
    await lastValueFrom(
      merge(served$, failed$).pipe(takeUntil(stop$.pipe(delay(STOP_WITHIN_MS, scheduler)))),
      { defaultValue: undefined },
    );
  } finally {
    isOver = true;
    await traffic.close().catch(() => undefined);
    await soon(() => ledger.declareFinal(), scheduler);
    await soon(() => ledger.close(), scheduler);
    quota.close();
    told.endedAt = time.now();
  }
}

async function soon(work: () => Promise<void>, scheduler: SchedulerLike): Promise<void> {
  const done$ = merge(defer(work), timer(SETTLE_WITHIN_MS, scheduler)).pipe(take(1));
  await lastValueFrom(done$, { defaultValue: undefined }).catch(() => undefined);
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
