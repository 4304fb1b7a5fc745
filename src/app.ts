import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { logCreator } from 'kafkajs';
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
import { openApi } from './account/api.ts';
import { steadyScheduler, wallClock } from './core/clock.ts';
import type { ConfigWith } from './config/config.ts';
import { openLinks } from './sinks/client/open-kafka.ts';
import { openDestination, topicsOf } from './sinks/topics/destination.ts';
import type { Destination } from './sinks/topics/destination.ts';
import { CellarstreamError } from './core/errors.ts';
import type { Hooks } from './observe/hooks.ts';
import { openLedger } from './account/ledger/ledger.ts';
import type { Inheritance } from './account/ledger/ledger.ts';
import { parseLedger } from './account/ledger/ledger-record.ts';
import { permitGrants } from './account/permits/permit-grants.ts';
import { quotas, WINDOW_MS } from './account/quotas.ts';
import { listTask, MAX_PAUSE_MS, serviceOf } from './pipeline/list-task.ts';
import { openAccount } from './account/account.ts';
import { listHooks } from './observe/list-hooks.ts';
import { RULES } from './resources/resources.ts';
import { resyncRequests } from './account/resync-requests.ts';
import { topicNames } from './schemas/events/topics.ts';
import type { TransactionalLog } from './sinks/transactional-log.ts';
import { parseCursor } from './pipeline/checkpoint/cursor.ts';
import { kafkaTransactionalLog } from './sinks/kafka-transactional-log.ts';
import { accountLog } from './sinks/ledger/kafka-ledger.ts';
import { kafkaSignals } from './sinks/signals/kafka-signals.ts';
import { offsetsSince } from './sinks/fetch/kafka-tail.ts';
import { ensureTopics } from './sinks/topics/kafka-topics.ts';
import type { PermitsRequest } from './sinks/signals/signals.ts';
import { newestCursors } from './pipeline/checkpoint/ownership.ts';
import { ledgerWriter } from './state/ledger-writer.ts';
import { lockFolder } from './state/lock.ts';
import { openStore } from './state/store.ts';
import { backoff } from './streams/flow/backoff.ts';

/** What {@link run} needs. */
export interface RunOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  /** Its first value stops the service: the page in hand is committed. It must replay that value. */
  readonly stop$: Observable<unknown>;
  readonly hooks?: Hooks;
  /** Clock and timers. Default a clock that only goes forward. */
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

/** What is there when the ledger is taken over. */
interface Opened {
  readonly destination: Destination;
  readonly log: TransactionalLog;
}

/** How long a stop waits for the page in hand, ms; what is not committed then is read again. */
const STOP_WITHIN_MS = 8_000;
/** How long a stop waits for the ledger, ms. */
const SETTLE_WITHIN_MS = 3_000;
/** A cursor is written so long after the newest answer, at most, unless Kafka is slow. */
const IN_HAND_MS = 10_000;

/**
 * The service: the resources of an account from the API to Kafka until `stop$`, each by itself. What
 * can pass is waited for, and what concerns one resource holds up no other; resolves after a clean
 * stop.
 *
 * @throws CellarstreamError what a later try can't heal: `SETTINGS`, `API_KEY_REJECTED` (of a key that has
 * worked: only when it was refused for `keyPatienceMs`), `FENCED`,
 * `STATE_LOCKED`, `STATE_FOLDER` (at the start), `TLS_REFUSED`, `TOPIC_SETTINGS`, `KAFKA_REFUSED`, `REGISTRY_REFUSED`, ...
 *
 * @example
 * ```ts
 * import { describeError, loadConfig, run } from 'cellarstream';
 * import { ReplaySubject } from 'rxjs';
 *
 * const stop$ = new ReplaySubject<void>(1);
 * process.once('SIGTERM', () => stop$.next());
 *
 * const { env } = process;
 * await run({
 *   config: loadConfig({ env, cwd: process.cwd(), needs: ['api', 'kafka', 'registry'] }),
 *   stop$,
 *   hooks: {
 *     onPublished: ({ resource, changes }) => console.log(`${resource}: ${changes.length} changes`),
 *     onRetry: ({ what, error }) => console.error(`${what}: ${describeError(error)}`),
 *   },
 * });
 * ```
 */
export async function run(options: RunOptions): Promise<void> {
  const unlock = lockFolder(options.config.stateDir);
  try {
    await serve(options);
  } finally {
    unlock();
  }
}

async function serve(options: RunOptions): Promise<void> {
  const { config, stop$, hooks = {}, scheduler = steadyScheduler } = options;
  const { stateDir, account, resources } = config;
  const instance = randomUUID();
  const stamps = wallClock((backMs) => hooks.onClockSetBack?.({ backMs }));

  const store = openStore(stateDir, (reason) => hooks.onDiscarded?.({ reason }));
  const ledger = openLedger({ instance, scheduler, hooks });
  const writer = ledgerWriter(join(stateDir, 'quota', account, 'writer'));
  const quota = quotas({ config, scheduler, stateDir, ledger, writer, instance });
  hooks.onStart?.({ quotas: quota.use });
  const mayBeSent = ledger.isRunning;
  const api = openApi({
    config: config.api,
    loginLimit: quota.login,
    mayBeSent,
    scheduler,
    hooks,
  });
  const lists = openAccount({ config, api, quotas: quota });
  const links = openLinks(config, { log: options.kafkaLog });
  const signals = kafkaSignals(links.kafka, topicNames(config.topics.prefix).signals);
  const permitRequests$ = new Subject<PermitsRequest>();
  const onPermits = (request: PermitsRequest) => permitRequests$.next(request);
  const resyncs = resyncRequests({
    topic: signals,
    account,
    resources,
    scheduler,
    hooks,
    onPermits,
  });
  const granting$ = permitRequests$.pipe(
    permitGrants({ topic: signals, account, instance, quota, ledger, scheduler, hooks }),
  );

  let isOver = false;
  const loggedIn$ = api.tokens.token$.pipe(take(1));
  /** Whether cursors were written in the last minute by somebody of whose requests nothing is known here: an older version, which has no ledger. */
  const hasStrangers = async (log: TransactionalLog, cursors: string, { record }: Inheritance) => {
    const now = scheduler.now();
    const knownUntil = record ? 0 : quota.lastAsked() + IN_HAND_MS;
    const since = Math.max(knownUntil, now - WINDOW_MS);
    if (since >= now) return false;
    const from = (await offsetsSince(links.kafka, cursors, since)).get(0);
    if (from === undefined || !record) return from !== undefined;
    const newest = await newestCursors(log, cursors, from);
    return resources.some((resource) => {
      const task = `${account}/${resource}`;
      const text = newest.get(task);
      return text !== undefined && !record.writers.includes(parseCursor(text, task).instance);
    });
  };
  const open = async (): Promise<Opened> => {
    const destination = await openDestination(config, links, options.kafkaLog);
    const { kafka } = links;
    const log = kafkaTransactionalLog(kafka, destination);
    const inherited = await ledger.claim(
      accountLog({
        ...{ kafka, log, account, scheduler },
        topic: destination.ledger,
        transactionalId: `cellarstream.${config.topics.prefix}.ledger/${account}`,
        remake: () => ensureTopics(topicsOf(config, kafka)),
        isMine: (text) => parseLedger(text)?.instance === instance,
      }),
    );
    const areStrangers = await hasStrangers(log, destination.cursors, inherited);
    if (isOver) throw new CellarstreamError('COMMIT_FAILED', 'it has ended meanwhile');
    const isBeside = quota.inherit(inherited);
    if (areStrangers) quota.distrust();
    if (isBeside || areStrangers) {
      for (const resource of resources) hooks.onTakenOver?.({ resource });
    }
    ledger.begin(inherited);
    return { destination, log };
  };
  const destination$ = defer(open).pipe(
    backoff({
      maxMs: MAX_PAUSE_MS,
      scheduler,
      onRetry: (retry) => hooks.onRetry?.({ what: serviceOf(retry.error), ...retry }),
    }),
  );
  const tasks = ({ destination, log }: Opened) => {
    const { registry } = links;
    const ofAll = { account: lists, config, destination, scheduler, wallClock: stamps, stop$ };
    const all = resources.map((resource) =>
      listTask({
        task: { ...ofAll, rules: RULES[resource], hooks: listHooks(hooks, resource) },
        ...{ instance, log, registry, store },
        resyncs: resyncs.task(resource),
      }),
    );
    return merge(...all);
  };
  // Nobody logs in before that was declared. Others get permits without a login: to look why there is none, say.
  const service$ = destination$.pipe(
    takeUntil(stop$),
    switchMap((opened) =>
      merge(
        loggedIn$.pipe(
          takeUntil(stop$),
          switchMap(() => tasks(opened)),
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
    await Promise.allSettled([api.close(), links.registry.close(), store.close(), signals.close()]);
    // Behind the last request. A successor that can't be told waits a little longer.
    const settled$ = merge(defer(ledger.settle), timer(SETTLE_WITHIN_MS, scheduler)).pipe(take(1));
    await lastValueFrom(settled$, { defaultValue: undefined }).catch(() => undefined);
    await ledger.close();
    quota.close();
  }
}
