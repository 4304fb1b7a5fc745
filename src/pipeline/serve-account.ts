import { join } from 'node:path';
import {
  defer,
  delay,
  ignoreElements,
  lastValueFrom,
  merge,
  Subject,
  switchMap,
  take,
  takeUntil,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { openAccount } from '../account/account.ts';
import { openApi } from '../account/api.ts';
import { openLedger } from '../account/ledger/ledger.ts';
import type { LedgerOptions } from '../account/ledger/ledger.ts';
import { permitGrants } from '../account/permits/permit-grants.ts';
import { quotas } from '../account/quotas.ts';
import { resyncRequests } from '../account/resync-requests.ts';
import type { ConfigWith } from '../config/config.ts';
import { keyDigest } from '../config/key-digest.ts';
import { wallClock } from '../core/clock.ts';
import type { Hooks } from '../observe/hooks.ts';
import { listHooks } from '../observe/list-hooks.ts';
import { RULES } from '../resources/resources.ts';
import type { Links } from '../sinks/client/open-kafka.ts';
import type { SignalTopic } from '../sinks/signals/kafka-signals.ts';
import type { PermitsRequest } from '../sinks/signals/signals.ts';
import { ledgerWriter } from '../state/ledger-writer.ts';
import { openStore } from '../state/store.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { BodyPool } from '../streams/http/body.ts';
import { listTask, MAX_PAUSE_MS, serviceOf } from './list-task.ts';
import type { Opening } from './list-task.ts';
import { takeOver } from './takeover.ts';
import type { TakenOver } from './takeover.ts';

export interface ServeAccountOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  /** Names this process. */
  readonly instance: string;
  readonly links: Links;
  /** Memory for pages: one for all accounts of a process. */
  readonly bodies: BodyPool;
  readonly signals: SignalTopic;
  /** Its first value stops the account: the pages in hand are committed, within {@link STOP_WITHIN_MS}. It must replay that value. */
  readonly stop$: Observable<unknown>;
  /** See {@link Task.pollNow$}. */
  readonly pollNow$?: Observable<unknown>;
  readonly hooks: Hooks;
  readonly scheduler: SchedulerLike;
  /** The order in which lists of many accounts are opened. Default all at once. */
  readonly opening?: Opening;
  /** See {@link LedgerOptions.beside}. */
  readonly beside?: LedgerOptions['beside'];
}

/** How long a stop waits for the pages in hand, ms; what is not committed then is read again. */
const STOP_WITHIN_MS = 8_000;
/** How long a stop waits for the ledger to be settled, and to be closed, ms. */
const SETTLE_WITHIN_MS = 3_000;

/**
 * One account until `stop$`: its token, its quotas and their ledger, and its lists, each by itself. Opens what is the
 * account's own, in its state folder, and closes it again; resolves after a clean stop.
 */
export async function serveAccount(options: ServeAccountOptions): Promise<void> {
  const { config, instance, links, signals, stop$, pollNow$, hooks, scheduler, beside } = options;
  const { opening = (open) => open() } = options;
  const { stateDir, account, resources } = config;
  const stamps = wallClock((backMs) => hooks.onClockSetBack?.({ backMs }));

  const store = openStore(stateDir, (reason) => hooks.onDiscarded?.({ reason }));
  const ledger = openLedger({
    ...{ instance, scheduler, hooks, beside },
    key: keyDigest(config.api),
  });
  const writer = ledgerWriter(join(stateDir, 'quota', account, 'writer'));
  const quota = quotas({ config, scheduler, stateDir, ledger, writer, instance });
  hooks.onStart?.({ quotas: quota.use });
  const api = openApi({
    bodies: options.bodies,
    config: config.api,
    loginLimit: quota.login,
    mayBeSent: ledger.isRunning,
    scheduler,
    hooks,
  });
  const lists = openAccount({ config, api, quotas: quota });
  const permitRequests$ = new Subject<PermitsRequest>();
  const resyncs = resyncRequests({
    topic: signals,
    ...{ account, resources, scheduler, hooks },
    onPermits: (request) => permitRequests$.next(request),
  });
  const granting$ = permitRequests$.pipe(
    permitGrants({ topic: signals, account, instance, quota, ledger, scheduler, hooks }),
  );

  let isOver = false;
  const takenOver$ = defer(() =>
    takeOver({
      ...{ config, links, instance, ledger, quotas: quota, scheduler, hooks },
      isOver: () => isOver,
    }),
  ).pipe(
    backoff({
      maxMs: MAX_PAUSE_MS,
      scheduler,
      onRetry: (retry) => hooks.onRetry?.({ what: serviceOf(retry.error), ...retry }),
    }),
  );
  const tasks = ({ destination, log }: TakenOver) => {
    const ofAll = {
      account: lists,
      config,
      destination,
      scheduler,
      wallClock: stamps,
      stop$,
      pollNow$,
    };
    const all = resources.map((resource, nth) =>
      listTask({
        task: {
          ...ofAll,
          ...{ rules: RULES[resource], hooks: listHooks(hooks, resource) },
          phase: 1 - nth / resources.length,
        },
        ...{ instance, log, registry: links.registry, compile: links.compile, store },
        resyncs: resyncs.task(resource),
        opening: (open) => opening(open, nth),
      }),
    );
    return merge(...all);
  };
  // Nobody logs in before that was declared. Others get permits without a login: to look why there is none, say.
  const loggedIn$ = api.tokens.token$.pipe(take(1));
  const service$ = takenOver$.pipe(
    takeUntil(stop$),
    switchMap((takenOver) =>
      merge(
        loggedIn$.pipe(
          takeUntil(stop$),
          switchMap(() => tasks(takenOver)),
        ),
        merge(resyncs.following$, granting$).pipe(takeUntil(stop$)),
      ),
    ),
  );
  // The token is renewed for as long as the service runs, asked for or not.
  const renewing$ = api.tokens.token$.pipe(ignoreElements(), takeUntil(stop$));

  try {
    await lastValueFrom(
      merge(service$, renewing$, ledger.failed$.pipe(takeUntil(stop$))).pipe(
        takeUntil(stop$.pipe(delay(STOP_WITHIN_MS, scheduler))),
      ),
      { defaultValue: undefined },
    );
  } finally {
    isOver = true;
    await Promise.allSettled([api.close(), store.close()]);
    // Behind the last request. A successor that can't be told waits a little longer.
    await soon(ledger.settle, scheduler);
    await soon(ledger.close, scheduler);
    quota.close();
  }
}

/** Waits for it, but not for long: nothing is lost where it fails. */
async function soon(work: () => Promise<void>, scheduler: SchedulerLike): Promise<void> {
  const done$ = merge(defer(work), timer(SETTLE_WITHIN_MS, scheduler)).pipe(take(1));
  await lastValueFrom(done$, { defaultValue: undefined }).catch(() => undefined);
}
