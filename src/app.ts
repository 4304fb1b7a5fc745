import { randomUUID } from 'node:crypto';
import type { logCreator } from 'kafkajs';
import {
  defer,
  delay,
  ignoreElements,
  lastValueFrom,
  merge,
  switchMap,
  take,
  takeUntil,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { openApi } from './api.ts';
import { steadyScheduler, wallClock } from './clock.ts';
import type { ConfigWith } from './config.ts';
import { openDestination, openLinks } from './destination.ts';
import type { Hooks } from './hooks.ts';
import { quotas, WINDOW_MS } from './quotas.ts';
import { MOST_PAUSE_MS, resourceTask, serviceOf } from './resource-task.ts';
import { resyncRequests } from './resync-requests.ts';
import { topicNames } from './schemas/topics.ts';
import { kafkaBroker } from './sinks/kafka-broker.ts';
import { kafkaSignals } from './sinks/kafka-signals.ts';
import { writtenSince } from './sinks/kafka-tail.ts';
import { lockFolder } from './state/lock.ts';
import { openStore } from './state/store.ts';
import { backoff } from './streams/backoff.ts';
import { refuseUnsupported } from './unsupported.ts';

/** What {@link run} needs. */
export interface RunOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  /** Its first value stops the service: the page in hand is committed. It must replay that value. */
  readonly stop$: Observable<unknown>;
  readonly hooks?: Hooks;
  /** Clock and timers. Default {@link steadyScheduler}. */
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

/** How long a stop waits for the page in hand, ms; what is not committed then is read again. */
const STOP_WITHIN_MS = 8_000;
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
 */
export async function run(options: RunOptions): Promise<void> {
  refuseUnsupported(options.config);
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
  const quota = quotas({ config, scheduler, stateDir });
  hooks.onStart?.({ quotas: quota.use });
  const api = openApi({ config: config.api, loginLimit: quota.login, scheduler, ...hooks });
  const links = openLinks(config, { log: options.kafkaLog });
  const signals = kafkaSignals(links.kafka, topicNames(config.topics.prefix).signals);
  const resyncs = resyncRequests({ topic: signals, account, resources, scheduler, hooks });

  const loggedIn$ = api.tokens.token$.pipe(take(1));
  /** Requests that this folder does not know of: it was put back, or another process had its turn. */
  const heedOthers = async (cursors: string) => {
    const now = scheduler.now();
    const since = Math.max(quota.lastAsked() + IN_HAND_MS, now - WINDOW_MS);
    if (since >= now || !(await writtenSince(links.kafka, cursors, since))) return;
    quota.distrust();
    for (const resource of resources) hooks.onTakenOver?.({ resource });
  };
  const open = async () => {
    const destination = await openDestination(config, links, options.kafkaLog);
    await heedOthers(destination.cursors);
    return destination;
  };
  const destination$ = defer(open).pipe(
    backoff({
      mostMs: MOST_PAUSE_MS,
      scheduler,
      onRetry: (retry) => hooks.onRetry?.({ what: serviceOf(retry.error), ...retry }),
    }),
  );
  const service$ = loggedIn$.pipe(
    switchMap(() => destination$),
    takeUntil(stop$),
    switchMap((destination) => {
      const broker = kafkaBroker(links.kafka, destination);
      const { registry } = links;
      const shared = { config, instance, api, quota, broker, registry, destination, store };
      const tasks = resources.map(
        (resource) =>
        resourceTask({ resource, ...shared, stop$, resyncs: resyncs.task(resource), scheduler, wallClock: stamps, hooks }), // prettier-ignore
      );
      return merge(...tasks, resyncs.following$.pipe(takeUntil(stop$)));
    }),
  );
  // The token is renewed for as long as the service runs, asked for or not.
  const renewing$ = api.tokens.token$.pipe(ignoreElements(), takeUntil(stop$));

  try {
    await lastValueFrom(
      merge(service$, renewing$).pipe(takeUntil(stop$.pipe(delay(STOP_WITHIN_MS, scheduler)))),
      { defaultValue: undefined },
    );
  } finally {
    await Promise.allSettled([api.close(), links.registry.close(), store.close(), signals.close()]);
    quota.close();
  }
}
