import {
  catchError,
  concat,
  defer,
  finalize,
  firstValueFrom,
  from,
  ignoreElements,
  Observable,
  of,
  retry,
  switchMap,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';
import type { TaskResyncs } from '../account/resync-requests.ts';
import { CellarstreamError, isOfOneResource } from '../core/errors.ts';
import type { Published } from '../observe/hooks.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { valueSubject } from '../schemas/events/topics.ts';
import type { TransactionalLog } from '../sinks/sink.ts';
import type { Store } from '../state/store.ts';
import { Confirmations } from '../streams/diff/confirmations.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { openCheckpoint } from './checkpoint/checkpoint.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import { expectWanted } from './checkpoint/ownership.ts';
import type { Ownership } from './checkpoint/ownership.ts';
import { chooseKey } from './choose-key.ts';
import type { ChosenKey } from './choose-key.ts';
import { openSchemaEvolution } from './codec/schema-evolution.ts';
import type { SchemaEvolution, SchemaEvolutionOptions } from './codec/schema-evolution.ts';
import { listEvents } from './list-events.ts';
import { avroKeys, TEXT_KEYS } from './publish/record-keys.ts';
import type { RecordKeys } from './publish/record-keys.ts';
import { taskPlace } from './task-place.ts';
import type { Task } from './task.ts';

export interface ListTaskOptions {
  readonly task: Task;
  /** Names this process. */
  readonly instance: string;
  readonly log: TransactionalLog;
  readonly registry: Registry;
  readonly store: Store;
  /** What is to be published again. Default nothing. */
  readonly resyncs?: TaskResyncs;
  /** Uniform in [0, 1), for the jitter of pauses. Default Math.random. */
  readonly random?: () => number;
  /** Opens this list when its turn has come. Default at once. */
  readonly opening?: <T>(open: () => Promise<T>) => Promise<T>;
  /** See {@link SchemaEvolutionOptions.compile}. */
  readonly compile?: SchemaEvolutionOptions['compile'];
}

/** Opens a list when its turn has come among the lists of all accounts; `nth`: its place among those of its account. */
export type Opening = <T>(open: () => Promise<T>, nth: number) => Promise<T>;

/** Kafka and the registry bear to be asked so often, ms: to be back soon after they are. */
export const MAX_PAUSE_MS = 5_000;
/** How long a resource that can't go on waits before it is tried again, ms. */
const TRY_AGAIN_MS = 60_000;

/**
 * One resource of one account: takes its checkpoint over, opens its schemas, finds its key, and reads and
 * publishes until `stop$`. After a failure that can pass, as of a Kafka that is away, it begins again from what was committed;
 * after one that can't, but concerns this resource alone, it says so and tries again in a minute.
 *
 * Errors with what concerns the process: `FENCED`, `SETTINGS`, `KAFKA_REFUSED`, ...
 */
export function listTask(options: ListTaskOptions): Observable<Published> {
  const { task, instance, log, registry, store, resyncs, random = Math.random, compile } = options;
  const { opening = (open) => open() } = options;
  const { account, rules, config, destination, hooks, scheduler, stop$ } = task;
  const { resource } = rules;
  const place = taskPlace(config, resource, destination);
  const ownership: Ownership = {};
  /** Recent events of this process; the object stays when the task is opened again after a failure. */
  let confirmations: Confirmations | undefined;

  const open = async () => {
    expectWanted(ownership);
    const evolution = await openSchemaEvolution({
      registry,
      subject: valueSubject(place.topic),
      resource,
      described: rules.described,
      onVersion: (schemaId) => hooks.onSchema({ schemaId }),
      pause: () => firstValueFrom(timer(0, scheduler)),
      ...(compile && { compile }),
    });
    for (const finding of await destination.look(resource)) hooks.onTopicDoubt({ finding });
    const checkpoint = await openCheckpoint({
      log,
      store: store.task(place.task),
      place,
      instance,
      canBeAsked: rules.byKey !== undefined,
      readImage: evolution.imageIn,
      ownership,
      scheduler,
      hooks,
    });
    try {
      await Promise.all(checkpoint.schemaIds().map(evolution.load));
    } catch (error) {
      await checkpoint.close().catch(() => undefined); // the first error says more
      throw error;
    }
    return { checkpoint, evolution };
  };
  const readAndPublish = ({ checkpoint, evolution }: Opened): Observable<Published> => {
    const lanes = account.lanes(resource, ownership.predecessor !== null);
    const { pageSize, intervalMs } = config.poll;
    const { sequence, firstRead, newestStamp } = checkpoint.cursor;
    const wasPublished = sequence > 0;
    confirmations ??= new Confirmations({
      now: () => scheduler.now(),
      inherited: { updates: wasPublished, deletions: wasPublished && firstRead.done, newestStamp },
    });
    const run = { task, lanes, evolution, checkpoint, confirmations, resyncs };
    const key$ = chooseKey({
      rules,
      config,
      published: checkpoint.cursor.keyFields,
      publishedFormat: checkpoint.cursor.keyFormat,
      firstPage: defer(() => account.list(rules).pages()({ offset: 0, pageSize }, lanes.poll)).pipe(
        tap(({ data }) => data.length === 0 && hooks.onEmpty({})),
      ),
      pauseMs: Math.max(intervalMs ?? 0, lanes.spacingMs('nothing')),
      topic: place.topic,
      scheduler,
    }).pipe(
      tap(({ keyFields, isNew }) => isNew && hooks.onKeyFields({ keyFields })),
      takeUntil(stop$),
    );
    const recordKeysOf = ({ keyFields }: ChosenKey): Observable<RecordKeys> => {
      if (config.keyFormat === 'text') return of(TEXT_KEYS);
      const statusChanges = rules.statusFields && destination.statusChanges?.topic;
      const topics = { events: place.topic, statusChanges };
      return defer(() => avroKeys({ registry, resource, keyFields, topics }));
    };
    const events$ = key$.pipe(
      switchMap((key) =>
        recordKeysOf(key).pipe(switchMap((recordKeys) => listEvents({ ...run, key, recordKeys }))),
      ),
    );
    return closing(events$, () => checkpoint.close());
  };

  return opened(() => opening(open)).pipe(
    takeUntil(stop$),
    tap(() => hooks.onReady({})),
    switchMap(readAndPublish),
    catchError((error: unknown) => {
      ownership.lost = error;
      throw error;
    }),
    backoff({
      maxMs: MAX_PAUSE_MS,
      scheduler,
      random,
      stop$,
      onRetry: (again) => hooks.onRetry({ what: serviceOf(again.error), ...again }),
    }),
    retry({
      delay: (error: unknown) => {
        if (!isOfOneResource(error)) return throwError(() => error);
        hooks.onFailed({ error, delayMs: TRY_AGAIN_MS });
        return timer(TRY_AGAIN_MS, scheduler).pipe(takeUntil(stop$));
      },
    }),
    finalize(() => (ownership.isOver = true)),
  );
}

/** What one opening of a task has brought. */
interface Opened {
  readonly checkpoint: Checkpoint;
  readonly evolution: SchemaEvolution;
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
