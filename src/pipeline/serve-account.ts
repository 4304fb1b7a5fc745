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
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { openAccount } from '../account/account.ts';
import { openApi } from '../account/api.ts';
import { openLedger, withinFinalTimeout } from '../account/ledger/ledger.ts';
import type { LedgerOptions } from '../account/ledger/ledger.ts';
import { permitGrants } from '../account/permits/permit-grants.ts';
import { quotas } from '../account/quotas.ts';
import { SignalJobs } from '../account/signal-jobs.ts';
import type { ConfigWith } from '../config/config.ts';
import { keyDigest } from '../config/key-digest.ts';
import { wallClock } from '../core/clock.ts';
import { PAUSES } from '../core/retries.ts';
import type { Hooks } from '../observe/hooks.ts';
import { listHooks } from '../observe/list-hooks.ts';
import { listNamed } from '../description/description.ts';
import type { KafkaClients } from '../sinks/open-kafka.ts';
import type { SignalTopic } from '../sinks/signals/kafka-signals.ts';
import type { PermitsRequest } from '../sinks/signals/signals.ts';
import { ledgerWriter } from '../state/recent-starts.ts';
import { openStore } from '../state/store.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { BodyPool } from '../streams/http/body.ts';
import { listTask, serviceOf } from './list-task.ts';
import type { Opening } from './list-task.ts';
import { claimAccount } from './claim-account.ts';
import type { ClaimedAccount } from './claim-account.ts';

export interface ServeAccountOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly instance: string;
  readonly clients: KafkaClients;
  /** Pool of buffers for response bodies. Shared by all accounts of a process. */
  readonly bodies: BodyPool;
  readonly signals: SignalTopic;
  /**
   * The first value stops the account. Pages already read are still committed, for up to `STOP_TIMEOUT_MS`. Must emit that value to later
   * subscribers, too.
   */
  readonly stop$: Observable<unknown>;
  /** Each value ends the pause of every list before its next poll for new changes. Default: none. */
  readonly pollNow$?: Observable<unknown>;
  readonly hooks: Hooks;
  readonly scheduler: SchedulerLike;
  /** Delays the opening of each list until it is the list's turn among the lists of all accounts. Default: all lists are opened at once. */
  readonly opening?: Opening;
  /** Messages to commit together with each claim of the account, and with its release (final declaration in the ledger). Default: none. */
  readonly sideMessages?: LedgerOptions['sideMessages'];
}

/** How long a stop waits for pages already read to be committed, in ms. Pages that are not committed by then are read again later. */
const STOP_TIMEOUT_MS = 8_000;

/**
 * Serves one account until `stop$`: keeps to the quotas, and reads and publishes each list. The account's part of the state folder is open
 * meanwhile. The returned promise is fulfilled after a clean stop.
 */
export async function serveAccount(options: ServeAccountOptions): Promise<void> {
  const { config, instance, clients, bodies, signals, stop$, pollNow$, hooks, scheduler } = options;
  const { sideMessages, opening = (open) => open() } = options;
  const { stateDir, account, resources, description } = config;
  const stamps = wallClock((backMs) => hooks.onClockSetBack?.({ backMs }));

  const store = openStore(stateDir, (reason) => hooks.onDiscarded?.({ reason }));
  const ledger = openLedger({
    ...{ instance, scheduler, hooks, sideMessages },
    apiKeyDigest: keyDigest(config.api),
  });
  const writer = ledgerWriter(join(stateDir, 'quota', account, 'writer'));
  const quota = quotas({ config, scheduler, stateDir, ledger, writer, instance, hooks });
  hooks.onStart?.({ quotas: () => quota.usage() });
  const api = openApi({
    ...{ bodies, description, stateDir, scheduler, hooks },
    config: config.api,
    loginLimit: quota.login,
    reportsOf: (resource) => quota.reportsOf(resource),
    maySend: () => ledger.isLeaseValid(),
  });
  const lists = openAccount({ config, api, quotas: quota });
  const permitRequests$ = new Subject<PermitsRequest>();
  const resyncs = new SignalJobs({
    topic: signals,
    ...{ account, resources, scheduler, hooks },
    onPermitsRequest: (request) => permitRequests$.next(request),
  });
  const granting$ = permitRequests$.pipe(
    permitGrants({ topic: signals, account, instance, quota, ledger, scheduler, hooks }),
  );

  let isOver = false;
  const claimed$ = defer(() =>
    claimAccount({
      ...{ config, clients, instance, ledger, quotas: quota, scheduler, hooks },
      hasEnded: () => isOver,
    }),
  ).pipe(
    backoff({
      ...PAUSES.restart,
      scheduler,
      onRetry: (retry) => hooks.onRetry?.({ what: serviceOf(retry.error), ...retry }),
    }),
  );
  const tasks = ({ destination, log }: ClaimedAccount) =>
    merge(
      ...resources.map((resource, nth) =>
        listTask({
          task: {
            ...{
              account: lists,
              config,
              destination,
              scheduler,
              wallClock: stamps,
              stop$,
              pollNow$,
            },
            ...{ list: listNamed(description, resource), hooks: listHooks(hooks, resource) },
            phase: 1 - nth / resources.length,
          },
          ...{ instance, log, registry: clients.registry, compile: clients.compile, store },
          resyncs: resyncs.task(resource),
          opening: (open) => opening(open, nth),
        }),
      ),
    );
  // The login is declared in the ledger, so it follows the claim. Permits are granted without a login, so that `check` can diagnose one
  // that fails.
  const loggedIn$ = api.tokens.token$.pipe(take(1));
  const service$ = claimed$.pipe(
    takeUntil(stop$),
    switchMap((claim) =>
      merge(
        loggedIn$.pipe(
          takeUntil(stop$),
          switchMap(() => tasks(claim)),
        ),
        merge(resyncs.following$, granting$).pipe(takeUntil(stop$)),
      ),
    ),
  );
  // Renews the token while the service runs, even while no request needs it.
  const renewing$ = api.tokens.token$.pipe(ignoreElements(), takeUntil(stop$));

  try {
    await lastValueFrom(
      merge(service$, renewing$, ledger.failed$.pipe(takeUntil(stop$))).pipe(
        takeUntil(stop$.pipe(delay(STOP_TIMEOUT_MS, scheduler))),
      ),
      { defaultValue: undefined },
    );
  } finally {
    isOver = true;
    await Promise.allSettled([api.close(), store.close()]);
    // After the last request. Without a final declaration a successor waits until the lease expires.
    await withinFinalTimeout(() => ledger.declareFinal(), scheduler);
    await withinFinalTimeout(() => ledger.close(), scheduler);
    quota.close();
  }
}
