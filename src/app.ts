import { randomUUID } from 'node:crypto';
import type { logCreator } from 'kafkajs';
import {
  catchError,
  concat,
  defer,
  delay,
  from,
  ignoreElements,
  lastValueFrom,
  merge,
  switchMap,
  take,
  takeUntil,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { openApi } from './api.ts';
import { steadyScheduler } from './clock.ts';
import type { ConfigWith } from './config.ts';
import { openDestination, openLinks, readImage } from './destination.ts';
import type { Destination } from './destination.ts';
import { CellarstreamError } from './errors.ts';
import type { Hooks } from './hooks.ts';
import { orderEvents } from './order-events.ts';
import { quotas } from './quotas.ts';
import { openTaskLog } from './sinks/task-log.ts';
import type { TaskLog } from './sinks/task-log.ts';
import { lockFolder } from './state/lock.ts';
import { openStore } from './state/store.ts';
import { backoff } from './streams/backoff.ts';
import { refuseUnsupported } from './unsupported.ts';

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

/**
 * The service: orders from the API to Kafka until `stop$`. What can pass is waited for; resolves
 * after a clean stop.
 *
 * @throws CellarstreamError what a later try can't heal: `SETTINGS`, `API_KEY_REJECTED`, `FENCED`,
 * `STATE_LOCKED`, `TOPIC_SETTINGS`, `KAFKA_REFUSED`, `REGISTRY_REFUSED`, ...
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
  const { stateDir, account } = config;
  const instance = randomUUID();

  const store = openStore(stateDir);
  const quota = quotas({ config, scheduler, stateDir });
  const api = openApi({ config: config.api, loginLimit: quota.login, scheduler, ...hooks });
  const links = openLinks(config, { log: options.kafkaLog });
  const waiting = <T>() =>
    backoff<T>({
      scheduler,
      onRetry: (retry) => hooks.onRetry?.({ what: serviceOf(retry.error), ...retry }),
    });

  const loggedIn$ = api.tokens.token$.pipe(take(1));
  const destination$ = defer(() => openDestination(config, links)).pipe(waiting());

  const task$ = (destination: Destination): Observable<unknown> => {
    let lost: { error: unknown } | undefined;
    const open = () =>
      openTaskLog({
        kafka: links.kafka,
        store: store.task(`${account}/orders`),
        task: `${account}/orders`,
        topic: destination.orders.topic,
        cursorTopic: destination.cursors,
        partitions: destination.partitions,
        transactionalId: `cellarstream.${config.topics.prefix}.${account}.orders`,
        instance,
        readImage: (value) => readImage(destination, value),
        ...(lost && { lost }),
        onRestored: (images) => hooks.onRestored?.({ resource: 'orders', images }),
      });
    const events$ = (log: TaskLog) =>
      orderEvents({ config, scheduler, hooks, api, quota, destination, log, stop$ }).pipe(
        catchError((error: unknown) => {
          lost = { error };
          throw error;
        }),
      );
    const opened = async () => {
      const log = await open();
      await Promise.all(log.schemaIds().map(destination.codecOf));
      hooks.onReady?.();
      return log;
    };
    return defer(opened).pipe(
      switchMap((log) => closing(events$(log), () => log.close())),
      waiting(),
    );
  };

  const service$ = loggedIn$.pipe(
    switchMap(() => destination$),
    takeUntil(stop$),
    switchMap(task$),
  );
  // The token is renewed for as long as the service runs, asked for or not.
  const renewing$ = api.tokens.token$.pipe(ignoreElements(), takeUntil(stop$));

  try {
    await lastValueFrom(
      merge(service$, renewing$).pipe(takeUntil(stop$.pipe(delay(STOP_WITHIN_MS, scheduler)))),
      { defaultValue: undefined },
    );
  } finally {
    await Promise.allSettled([api.close(), links.registry.close(), store.close()]);
    quota.close();
  }
}

/** Which service an error speaks of. */
function serviceOf(error: unknown): string {
  const code = error instanceof CellarstreamError ? error.code : '';
  return code.startsWith('REGISTRY') ? 'registry' : 'kafka';
}

/** Mirrors a stream, and closes what it used before its end or its error goes on. */
function closing<T>(source: Observable<T>, close: () => Promise<void>): Observable<T> {
  const closed$ = defer(() => from(close())).pipe(ignoreElements());
  return concat(
    source.pipe(
      catchError((error: unknown) =>
        concat(
          closed$.pipe(catchError(() => [])), // the first error says more
          defer(() => {
            throw error;
          }),
        ),
      ),
    ),
    closed$,
  );
}
