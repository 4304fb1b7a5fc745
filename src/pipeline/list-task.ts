import {
  catchError,
  concat,
  defer,
  finalize,
  firstValueFrom,
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
import type { Lanes } from '../account/quotas.ts';
import type { TaskJobs } from '../account/signal-jobs.ts';
import { CellarstreamError, isResourceError } from '../core/errors.ts';
import { PAUSES } from '../core/retries.ts';
import type { Published } from '../observe/hooks.ts';
import { valueSubject } from '../schemas/events/topics.ts';
import type { Store } from '../state/store.ts';
import { Confirmations } from '../streams/diff/confirmations.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { openCheckpoint } from './checkpoint/checkpoint.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import type { Cursor } from './checkpoint/cursor.ts';
import { expectNotEnded } from './checkpoint/task-claim.ts';
import type { ClaimState, TaskClaimOptions } from './checkpoint/task-claim.ts';
import { chooseKey } from './choose-key.ts';
import type { ChosenKey } from './choose-key.ts';
import { SchemaEvolution } from './codec/schema-evolution.ts';
import type { SchemaEvolutionOptions } from './codec/schema-evolution.ts';
import { listEvents } from './list-events.ts';
import { avroKeys } from './publish/record-keys.ts';
import type { RecordKeys } from './publish/record-keys.ts';
import { taskNames } from './task.ts';
import type { Task, TaskNames } from './task.ts';

export interface ListTaskOptions
  extends
    Pick<TaskClaimOptions, 'log' | 'instance'>,
    Pick<SchemaEvolutionOptions, 'registry' | 'compile'> {
  readonly task: Task;
  readonly store: Store;
  readonly resyncs?: TaskJobs;
  /** Random numbers in [0, 1) for the jitter of pauses. Default `Math.random`. */
  readonly random?: () => number;
  /**
   * Decides when the list's task is opened: calls `open` when it is the list's turn, and returns the result of `open`. Default: at once.
   */
  readonly opening?: <T>(open: () => Promise<T>) => Promise<T>;
}

/**
 * Decides when a list's task is opened: calls `open` when it is the list's turn among the lists of all accounts, and returns the result of
 * `open`. `nth` is the index of the list among the lists of its account.
 */
export type Opening = <T>(open: () => Promise<T>, nth: number) => Promise<T>;

/**
 * Runs one list of one account: claims its task, and reads and publishes until `stop$`. After a transient failure, such as an unreachable
 * Kafka, the task resumes from the last commit. After any other failure that concerns only this list, `onFailed` is called, and the task is
 * retried after a minute.
 *
 * Errors if the failure concerns the whole process, for example with the code `FENCED`, `SETTINGS` or `KAFKA_REFUSED`.
 */
export function listTask(options: ListTaskOptions): Observable<Published> {
  return new ListTask(options).run();
}

/** A task that has been claimed and opened. */
interface OpenTask {
  readonly checkpoint: Checkpoint;
  readonly evolution: SchemaEvolution;
}

/**
 * Reads a list and publishes its changes. After an error that does not concern the whole process, the checkpoint is opened again and
 * reading resumes.
 */
class ListTask {
  readonly #options: ListTaskOptions;
  readonly #names: TaskNames;
  readonly #claimState: ClaimState = {};
  #confirmations: Confirmations | undefined;

  constructor(options: ListTaskOptions) {
    this.#options = options;
    const { config, list, destination } = options.task;
    this.#names = taskNames(config, list.name, destination);
  }

  run(): Observable<Published> {
    const { task, opening = (open) => open(), random = Math.random } = this.#options;
    const { hooks, list, scheduler, stop$ } = task;
    return openUnlessClosed(() => opening(() => this.#open())).pipe(
      takeUntil(stop$),
      tap(() => hooks.onReady({})),
      switchMap((open) => closeAfter(this.#readAndPublish(open), () => open.checkpoint.close())),
      catchError((error: unknown) => {
        this.#claimState.lastError = error;
        throw error;
      }),
      backoff({
        ...PAUSES.restart,
        scheduler,
        random,
        stop$,
        onRetry: (again) => hooks.onRetry({ what: serviceOf(again.error, list.name), ...again }),
      }),
      retry({
        delay: (error: unknown) => {
          if (!isResourceError(error)) return throwError(() => error);
          const delayMs = PAUSES.permanentError.firstMs;
          hooks.onFailed({ error, delayMs });
          return timer(delayMs, scheduler).pipe(takeUntil(stop$));
        },
      }),
      finalize(() => (this.#claimState.hasEnded = true)),
    );
  }

  async #open(): Promise<OpenTask> {
    const { task, instance, log, registry, store, compile } = this.#options;
    const { list, destination, hooks, scheduler } = task;
    const names = this.#names;
    expectNotEnded(this.#claimState);
    const evolution = await SchemaEvolution.open({
      ...{ registry, list },
      subject: valueSubject(names.topic),
      onVersion: (schemaId) => hooks.onSchema({ schemaId }),
      pause: () => firstValueFrom(timer(0, scheduler)),
      ...(compile && { compile }),
    });
    for (const finding of await destination.inspect(list.name)) hooks.onTopicDoubt({ finding });
    const checkpoint = await openCheckpoint({
      ...{ log, names, instance, scheduler, hooks },
      store: store.task(names.task),
      canRequestRecords: list.one !== undefined,
      readImage: (event) => evolution.imageIn(event),
      claimState: this.#claimState,
    });
    try {
      await Promise.all(checkpoint.schemaIds.map((schemaId) => evolution.load(schemaId)));
    } catch (error) {
      await checkpoint.close().catch(() => undefined); // the first error says more
      throw error;
    }
    return { checkpoint, evolution };
  }

  #readAndPublish({ checkpoint, evolution }: OpenTask): Observable<Published> {
    const { task, resyncs } = this.#options;
    const { account, list } = task;
    const lanes = account.lanes(list.name, this.#claimState.predecessor !== null);
    const confirmations = (this.#confirmations ??= this.#newConfirmations(checkpoint.cursor));
    const run = { task, lanes, evolution, checkpoint, confirmations, resyncs };
    return this.#key(checkpoint.cursor, lanes).pipe(
      switchMap((key) =>
        this.#recordKeys(key).pipe(
          switchMap((recordKeys) => listEvents({ ...run, key, recordKeys })),
        ),
      ),
    );
  }

  #newConfirmations({ sequence, firstRead, newestStamp }: Cursor): Confirmations {
    const { scheduler } = this.#options.task;
    const updates = sequence > 0;
    return new Confirmations({
      now: () => scheduler.now(),
      inherited: { updates, deletions: updates && firstRead.done, newestStamp },
    });
  }

  #key({ keyFields, keyFormat }: Cursor, lanes: Lanes): Observable<ChosenKey> {
    const { account, list, config, hooks, scheduler, stop$ } = this.#options.task;
    const { pageSize, intervalMs } = config.poll;
    return chooseKey({
      ...{ list, config, scheduler, topic: this.#names.topic },
      publishedKeyFields: keyFields,
      publishedFormat: keyFormat,
      firstPage: defer(() => account.list(list).pages()({ offset: 0, pageSize }, lanes.poll)).pipe(
        tap(({ data }) => data.length === 0 && hooks.onEmpty({})),
      ),
      pauseMs: Math.max(intervalMs ?? 0, lanes.pollSpacingMs('nothing')),
    }).pipe(
      tap(({ keyFields, isNew }) => isNew && hooks.onKeyFields({ keyFields })),
      takeUntil(stop$),
    );
  }

  /** Emits the encoders of the keys of messages; undefined if keys are text. */
  #recordKeys({ keyFields }: ChosenKey): Observable<RecordKeys | undefined> {
    const { task, registry } = this.#options;
    const { config, list, destination } = task;
    if (config.keyFormat === 'text') return of(undefined);
    const statusChanges = destination.statusChanges.get(list.name)?.topic;
    const topics = { events: this.#names.topic, statusChanges };
    return defer(() => avroKeys(registry, list, keyFields, topics));
  }
}

/** Emits the task that `open` has opened. If the subscriber has unsubscribed by then, closes the task instead. */
function openUnlessClosed(open: () => Promise<OpenTask>): Observable<OpenTask> {
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

/**
 * Returns the name of the dependency that an error came from: `list` (the list's name) for an error of the API, else `state folder`,
 * `registry` or `kafka`.
 */
export function serviceOf(error: unknown, list = 'kafka'): string {
  const code = error instanceof CellarstreamError ? error.code : '';
  if (code.startsWith('API') || code === 'QUOTA_EXCEEDED') return list;
  if (code.startsWith('STATE')) return 'state folder';
  return code.startsWith('REGISTRY') ? 'registry' : 'kafka';
}

/** Mirrors `source`, and waits for `close` before it passes on the completion or the error. */
function closeAfter<T>(source: Observable<T>, close: () => Promise<void>): Observable<T> {
  return concat(
    source.pipe(
      catchError(async (error: unknown): Promise<never> => {
        await close().catch(() => undefined); // the first error says more
        throw error;
      }),
    ),
    defer(close).pipe(ignoreElements()),
  );
}
