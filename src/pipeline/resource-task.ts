import {
  catchError,
  concat,
  defer,
  finalize,
  firstValueFrom,
  from,
  ignoreElements,
  Observable,
  retry,
  switchMap,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Api } from '../account/api.ts';
import { chooseKey } from './choose-key.ts';
import type { Config } from '../config/config.ts';
import type { Destination } from '../sinks/topics/destination.ts';
import { CellarstreamError, isOfOneResource } from '../core/errors.ts';
import type { Hooks, Published } from '../observe/hooks.ts';
import type { Quotas } from '../account/quotas.ts';
import { resourceEvents } from './resource-events.ts';
import { RULES } from '../resources/resources.ts';
import type { Resource } from '../resources/resources.ts';
import type { TaskResyncs } from '../account/resync-requests.ts';
import { openSchemaEvolution } from './encode/schema-evolution.ts';
import type { SchemaEvolutionOptions } from './encode/schema-evolution.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { valueSubject } from '../schemas/events/topics.ts';
import type { TransactionalLog } from '../sinks/transactional-log.ts';
import { openCheckpoint } from './checkpoint/checkpoint.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import type { Ownership } from './checkpoint/ownership.ts';
import type { Store } from '../state/store.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { transactionalIds } from './transactional-id.ts';

export interface ResourceTaskOptions {
  readonly resource: Resource;
  readonly config: Config;
  /** Names this process. */
  readonly instance: string;
  readonly api: Api;
  readonly quota: Quotas;
  readonly log: TransactionalLog;
  readonly registry: Registry;
  readonly destination: Destination;
  readonly store: Store;
  readonly stop$: Observable<unknown>;
  /** What is to be published again. Default nothing. */
  readonly resyncs?: TaskResyncs;
  readonly scheduler: SchedulerLike;
  /** The time that events are stamped with, ms since the epoch: it may step back. Default the scheduler's. */
  readonly wallClock?: () => number;
  /** Uniform in [0, 1), for the jitter of pauses. Default Math.random. */
  readonly random?: () => number;
  readonly hooks: Hooks;
  /** See {@link SchemaEvolutionOptions.compile}. */
  readonly compile?: SchemaEvolutionOptions['compile'];
}

/** Kafka and the registry bear to be asked so often, ms: to be back soon after they are. */
export const MAX_PAUSE_MS = 5_000;
/** How long a resource that can't go on waits before it is tried again, ms. */
const TRY_AGAIN_MS = 60_000;

/**
 * One resource of one account: takes its checkpoint over, opens its schemas, finds its key, and reads and
 * publishes until `stop$`. After a failure that can pass it begins again from what was committed;
 * after one that can't, but concerns this resource alone, it says so and tries again in a minute.
 *
 * Errors with what concerns the process: `FENCED`, `SETTINGS`, `KAFKA_REFUSED`, ...
 */
export function resourceTask(options: ResourceTaskOptions): Observable<Published> {
  const { resource, config, instance, api, quota, log, registry, destination, store } = options;
  const { stop$, resyncs, scheduler, wallClock, random = Math.random, hooks, compile } = options;
  const task = `${config.account}/${resource}`;
  const topic = destination.records(resource);
  const ownership: Ownership = {};

  const open = async () => {
    const book = await openSchemaEvolution({
      registry,
      subject: valueSubject(topic),
      resource,
      described: RULES[resource].described,
      onVersion: (schemaId) => hooks.onSchema?.({ resource, schemaId }),
      pause: () => firstValueFrom(timer(0, scheduler)),
      ...(compile && { compile }),
    });
    for (const finding of await destination.look(resource)) {
      hooks.onTopicDoubt?.({ resource, finding });
    }
    const checkpoint = await openCheckpoint({
      log,
      store: store.task(task),
      task,
      topic,
      cursorTopic: destination.cursors,
      ...transactionalIds(config.topics.prefix, config.account, resource),
      instance,
      canBeAsked: RULES[resource].byKey !== undefined,
      readImage: book.imageIn,
      ownership,
      scheduler,
      onRestored: (images) => hooks.onRestored?.({ resource, images }),
      onLost: (lost) => hooks.onLost?.({ resource, lost }),
    });
    try {
      await Promise.all(checkpoint.schemaIds().map(book.load));
    } catch (error) {
      await checkpoint.close().catch(() => undefined); // the first error says more
      throw error;
    }
    return { checkpoint, book };
  };

  return opened(open).pipe(
    takeUntil(stop$),
    tap(() => hooks.onReady?.({ resource })),
    switchMap(({ checkpoint, book }) => {
      const lanes = quota.lanes(resource, ownership.predecessor !== null);
      const pageSize = config.poll.pageSize;
      const key$ = chooseKey({
        resource,
        config,
        published: checkpoint.cursor.keyFields,
        firstPage: defer(() => api.list(resource)({ offset: 0, pageSize }, lanes.poll)).pipe(
          tap(({ data }) => data.length === 0 && hooks.onEmpty?.({ resource })),
        ),
        pauseMs: Math.max(config.poll.intervalMs ?? 0, lanes.spacingMs('nothing')),
        topic,
        scheduler,
      }).pipe(
        tap(({ keyFields, isNew }) => isNew && hooks.onKeyFields?.({ resource, keyFields })),
        takeUntil(stop$),
      );
      const events$ = key$.pipe(
        switchMap(({ keyFields, beganAt, wasEmpty }) =>
          resourceEvents({
            resource,
            config,
            api,
            lanes,
            destination,
            book,
            checkpoint,
            keyFields,
            beganAt,
            wasEmpty,
            stop$,
            resyncs,
            scheduler,
            wallClock,
            hooks,
          }),
        ),
      );
      return closing(events$, () => checkpoint.close());
    }),
    catchError((error: unknown) => {
      ownership.lost = error;
      throw error;
    }),
    backoff({
      maxMs: MAX_PAUSE_MS,
      scheduler,
      random,
      stop$,
      onRetry: (again) => hooks.onRetry?.({ what: serviceOf(again.error), resource, ...again }),
    }),
    retry({
      delay: (error: unknown) => {
        if (!isOfOneResource(error)) return throwError(() => error);
        hooks.onFailed?.({ resource, error, delayMs: TRY_AGAIN_MS });
        return timer(TRY_AGAIN_MS, scheduler).pipe(takeUntil(stop$));
      },
    }),
    finalize(() => (ownership.isOver = true)),
  );
}

/** What was opened, unless nobody waits for it any more: then it is closed again. */
function opened<T extends { readonly checkpoint: Checkpoint }>(
  open: () => Promise<T>,
): Observable<T> {
  return new Observable((subscriber) => {
    open().then(
      (all) => {
        if (subscriber.closed) return void all.checkpoint.close().catch(() => undefined);
        subscriber.next(all);
        subscriber.complete();
      },
      (error: unknown) => subscriber.error(error),
    );
  });
}

/** Which service an error speaks of. */
export function serviceOf(error: unknown): string {
  const code = error instanceof CellarstreamError ? error.code : '';
  if (code.startsWith('STATE')) return 'state folder';
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
