import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { TaskMemory } from '../../state/store.ts';
import type { TransactionalLog, FencedSink } from '../../sinks/sink.ts';
import { parseCursor } from './cursor.ts';
import { isEpochError } from '../../kafka/client/kafka-error.ts';
import { CLAIM_GRACE_MS, fencedError } from '../../sinks/producer/fencing.ts';
import type { TaskNames } from '../task.ts';

/** The Kafka client of a task, and the names of the task's topics, cursor key and transactional id. */
export interface TaskLog {
  readonly log: TransactionalLog;
  readonly names: TaskNames;
}

export interface TaskClaimOptions extends TaskLog {
  readonly instance: string;
  /** State that all attempts of this process to open the task share, such as the id of the task's previous owner. */
  readonly claimState: ClaimState;
}

/** State about a task that a process retains while it opens the task again and again. Initially empty. */
export interface ClaimState {
  /**
   * Id of the instance that owned the task before this process; null if there was none. Undefined until this process has read the cursor
   * for the first time.
   */
  predecessor?: string | null;
  /** End offset of the cursors' topic before this process first opened the task. Cursors at lower offsets were written by predecessors. */
  cursorBegin?: bigint;
  /** The newest transactional producer (sink) that this process has opened for the task. */
  sink?: FencedSink;
  /**
   * Newest error in this process that ended the task or an attempt to open it. The `cause` of a `FENCED` error of {@link expectOwnCursor}.
   */
  lastError?: unknown;
  /**
   * Whether the task has ended. Set by the caller. If the task is being opened at that time, the opening throws instead of claiming the
   * task.
   */
  hasEnded?: boolean;
}

/**
 * Opens the task's transactional producer (sink). It fences the previous owner of the task, or replaces the producer that this process
 * opened before.
 *
 * @throws CellarstreamError `FENCED` if another process has claimed the task; `COMMIT_FAILED` if the task has ended; errors of Kafka.
 */
export async function openFencedSink(
  options: TaskClaimOptions & { readonly scheduler: SchedulerLike },
  known: KnownCursor | undefined,
): Promise<FencedSink> {
  const { log, names, claimState, scheduler } = options;
  expectNotEnded(claimState);
  try {
    claimState.sink = await log.open(names.transactionalId, claimState.sink?.producer);
  } catch (error) {
    // Another process has claimed the task, or a transaction has timed out: brokers report the same error, and the cursor tells which.
    if (!claimState.sink || !isEpochError(error)) throw error;
    claimState.lastError = error;
    await lastValueFrom(timer(CLAIM_GRACE_MS, scheduler));
    await expectOwnCursor(options, known);
    claimState.sink = await log.open(names.transactionalId);
  }
  return claimState.sink;
}

/**
 * Returns a copy of `taskLog` that reads the start and end offsets of partitions (`log.bounds`) through `sink`. These end offsets include
 * all transactions of the task's earlier producers.
 */
export function withSinkBounds<Placed extends TaskLog>(sink: FencedSink, taskLog: Placed): Placed {
  // A former partition leader may respond to other clients with lower end offsets.
  const bounds: TransactionalLog['bounds'] = (...asked) => sink.bounds(...asked);
  return { ...taskLog, log: { ...taskLog.log, bounds } };
}

/** Checks that the task has not ended. @throws CellarstreamError `COMMIT_FAILED` if it has. */
export function expectNotEnded({ hasEnded = false }: ClaimState): void {
  if (hasEnded)
    throw new CellarstreamError(
      'COMMIT_FAILED',
      'this instance stopped serving the list before it had begun to publish it, so nothing was published',
    );
}

/**
 * Reads the newest cursor and checks that no other process has claimed the task since this process first opened it. If this process has not
 * read the cursor yet, only returns undefined.
 *
 * @throws CellarstreamError `FENCED` if the newest cursor was committed since then by an instance that is neither this one nor the task's
 * previous owner.
 */
export async function expectOwnCursor(
  options: TaskClaimOptions,
  known: KnownCursor | undefined,
): Promise<KnownCursor | undefined> {
  const { predecessor, cursorBegin = 0n, lastError } = options.claimState;
  if (predecessor === undefined) return undefined;
  const found = await readCursor(options, known);
  if (found.cursor === null || found.offset === undefined || found.offset < cursorBegin)
    return found;
  const { instance } = parseCursor(found.cursor, options.names.task);
  if (instance !== predecessor && instance !== options.instance) throw fencedError(lastError);
  return found;
}

/** The newest known cursor of a task, and the offset up to which the cursors' topic was read for it. */
export interface KnownCursor extends Pick<TaskMemory, 'cursor' | 'cursorEnd'> {
  /** Offset of the cursor's message. Undefined if the topic has no newer cursor than the one known before. */
  readonly offset?: bigint;
}

/**
 * Returns the newest committed cursor of a task: the one in the topic or the one in `known`, whichever is newer. The cursor in the result
 * is null if neither exists.
 *
 * @throws CellarstreamError `SETTINGS` if the topic has a cursor of another account for the same list, unless `isShared` is set; errors of
 * Kafka.
 */
export async function readCursor(
  { log, names: { cursorTopic, task, isShared } }: TaskLog,
  known: KnownCursor | undefined,
): Promise<KnownCursor> {
  const { newest, next } = await newestCursors(log, cursorTopic);
  const resource = task.slice(task.lastIndexOf('/'));
  const other = [...newest.keys()].find((key) => key !== task && key.endsWith(resource));
  // The keys of events do not contain the account, so two accounts with the same topics would overwrite each other's events.
  if (!isShared && other !== undefined)
    throw new CellarstreamError(
      'SETTINGS',
      `${cursorTopic} has a cursor of ${other}: another ACCOUNT_NAME publishes, or has published, under this TOPIC_PREFIX. If ACCOUNT_NAME was changed, set it back; otherwise set a TOPIC_PREFIX that no other account uses`,
    );
  const seen = BigInt(known?.cursorEnd ?? 0);
  const found = newest.get(task);
  const cursorEnd = String(next);
  // Also if the cursors' topic was recreated: the cursor known from before is valid until a newer one is committed.
  if (!found || (BigInt(found.offset) < seen && seen <= next))
    return { cursor: known?.cursor ?? null, cursorEnd };
  return { cursor: found.value.toString(), cursorEnd, offset: BigInt(found.offset) };
}

export function newestCursors(
  log: TransactionalLog,
  cursorTopic: string,
): ReturnType<TransactionalLog['compacted']> {
  return log.compacted(
    cursorTopic,
    async () => (await log.bounds(cursorTopic)).get(0) ?? { low: 0n, high: 0n },
  );
}
