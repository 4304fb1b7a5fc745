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
import type { TaskJobs } from '../account/signal-jobs.ts';
import { CellarstreamError, isResourceError } from '../core/errors.ts';
import { PAUSES } from '../core/retries.ts';
import type { Published } from '../observe/hooks.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { valueSubject } from '../schemas/events/topics.ts';
import type { TransactionalLog } from '../sinks/sink.ts';
import type { Store } from '../state/store.ts';
import { Confirmations } from '../streams/diff/confirmations.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { openCheckpoint } from './checkpoint/checkpoint.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import { expectNotEnded } from './checkpoint/task-claim.ts';
import type { ClaimState } from './checkpoint/task-claim.ts';
import { chooseKey } from './choose-key.ts';
import type { ChosenKey } from './choose-key.ts';
import { openSchemaEvolution } from './codec/schema-evolution.ts';
import type { SchemaEvolution, SchemaEvolutionOptions } from './codec/schema-evolution.ts';
import { listEvents } from './list-events.ts';
import { avroKeys, TEXT_KEYS } from './publish/record-keys.ts';
import type { RecordKeys } from './publish/record-keys.ts';
import { taskNames } from './task-names.ts';
import type { Task } from './task.ts';

export interface ListTaskOptions {
  readonly task: Task;
  /** Id of this process. */
  readonly instance: string;
  readonly log: TransactionalLog;
  readonly registry: Registry;
  readonly store: Store;
  /** Requests for resyncs and certificates of this list. Default none. */
  readonly resyncs?: TaskJobs;
  /** Returns random numbers in [0, 1) for the jitter of pauses. Default `Math.random`. */
  readonly random?: () => number;
  /** Calls `open`, which opens the task, when it is this list's turn. Default: calls it at once. */
  readonly opening?: <T>(open: () => Promise<T>) => Promise<T>;
  /** Compiles the codec of an event schema: see {@link SchemaEvolutionOptions.compile}. */
  readonly compile?: SchemaEvolutionOptions['compile'];
}

/**
 * Calls `open`, which opens a list's task, when it is that list's turn among the lists of all accounts. `nth` is the index of the list in
 * its account.
 */
export type Opening = <T>(open: () => Promise<T>, nth: number) => Promise<T>;

/**
 * Runs one list of one account: claims its task, opens its schemas, chooses its key, and reads and publishes until `stop$`. After a
 * transient failure, such as an unreachable Kafka, it resumes from the last commit. After any other failure that concerns this list alone
 * it calls `onFailed` and retries after a minute.
 *
 * Errors if the failure concerns the whole process: `FENCED`, `SETTINGS`, `KAFKA_REFUSED`, ...
 */
export function listTask(options: ListTaskOptions): Observable<Published> {
  const { task, instance, log, registry, store, resyncs, random = Math.random, compile } = options;
  const { opening = (open) => open() } = options;
  const { account, rules, config, destination, hooks, scheduler, stop$ } = task;
  const { resource } = rules;
  const names = taskNames(config, resource, destination);
  const claimState: ClaimState = {};
  /**
   * Recent events that this process has published, and records that wait for a confirming second read; reused when the task is opened again
   * after a failure.
   */
  let confirmations: Confirmations | undefined;

  const open = async () => {
    expectNotEnded(claimState);
    const evolution = await openSchemaEvolution({
      registry,
      subject: valueSubject(names.topic),
      resource,
      described: rules.described,
      onVersion: (schemaId) => hooks.onSchema({ schemaId }),
      pause: () => firstValueFrom(timer(0, scheduler)),
      ...(compile && { compile }),
    });
    for (const finding of await destination.inspect(resource)) hooks.onTopicDoubt({ finding });
    const checkpoint = await openCheckpoint({
      log,
      store: store.task(names.task),
      names,
      instance,
      canRequestRecords: rules.byKey !== undefined,
      readImage: evolution.imageIn,
      claimState,
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
  const readAndPublish = ({ checkpoint, evolution }: OpenTask): Observable<Published> => {
    const lanes = account.lanes(resource, claimState.predecessor !== null);
    const { pageSize, intervalMs } = config.poll;
    const { sequence, firstRead: initialSnapshot, newestStamp } = checkpoint.cursor;
    const wasPublished = sequence > 0;
    confirmations ??= new Confirmations({
      now: () => scheduler.now(),
      inherited: {
        updates: wasPublished,
        deletions: wasPublished && initialSnapshot.done,
        newestStamp,
      },
    });
    const run = { task, lanes, evolution, checkpoint, confirmations, resyncs };
    const key$ = chooseKey({
      rules,
      config,
      publishedKeyFields: checkpoint.cursor.keyFields,
      publishedFormat: checkpoint.cursor.keyFormat,
      firstPage: defer(() => account.list(rules).pages()({ offset: 0, pageSize }, lanes.poll)).pipe(
        tap(({ data }) => data.length === 0 && hooks.onEmpty({})),
      ),
      pauseMs: Math.max(intervalMs ?? 0, lanes.pollSpacingMs('nothing')),
      topic: names.topic,
      scheduler,
    }).pipe(
      tap(({ keyFields, isNew }) => isNew && hooks.onKeyFields({ keyFields })),
      takeUntil(stop$),
    );
    const recordKeysOf = ({ keyFields }: ChosenKey): Observable<RecordKeys> => {
      if (config.keyFormat === 'text') return of(TEXT_KEYS);
      const statusChanges = rules.statusFields && destination.statusChanges?.topic;
      const topics = { events: names.topic, statusChanges };
      return defer(() => avroKeys({ registry, resource, keyFields, topics }));
    };
    const events$ = key$.pipe(
      switchMap((key) =>
        recordKeysOf(key).pipe(switchMap((recordKeys) => listEvents({ ...run, key, recordKeys }))),
      ),
    );
    return closeAfter(events$, () => checkpoint.close());
  };

  return openUnlessClosed(() => opening(open)).pipe(
    takeUntil(stop$),
    tap(() => hooks.onReady({})),
    switchMap(readAndPublish),
    catchError((error: unknown) => {
      claimState.lastError = error;
      throw error;
    }),
    backoff({
      ...PAUSES.restart,
      scheduler,
      random,
      stop$,
      onRetry: (again) => hooks.onRetry({ what: serviceOf(again.error), ...again }),
    }),
    retry({
      delay: (error: unknown) => {
        if (!isResourceError(error)) return throwError(() => error);
        const delayMs = PAUSES.permanentError.firstMs;
        hooks.onFailed({ error, delayMs });
        return timer(delayMs, scheduler).pipe(takeUntil(stop$));
      },
    }),
    finalize(() => (claimState.hasEnded = true)),
  );
}

/** A task that has been claimed and opened. */
interface OpenTask {
  readonly checkpoint: Checkpoint;
  readonly evolution: SchemaEvolution;
}

/** Emits the result of `open`. If the subscription has ended by then, closes the result's checkpoint instead. */
function openUnlessClosed<T extends { readonly checkpoint: Checkpoint }>(
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

/** Name of the service that an error came from, for log messages. */
export function serviceOf(error: unknown): string {
  const code = error instanceof CellarstreamError ? error.code : '';
  if (code.startsWith('STATE')) return 'state folder';
  return code.startsWith('REGISTRY') ? 'registry' : 'kafka';
}

/** Mirrors `source`, and waits for `close` before it passes on the completion or the error. */
function closeAfter<T>(source: Observable<T>, close: () => Promise<void>): Observable<T> {
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
