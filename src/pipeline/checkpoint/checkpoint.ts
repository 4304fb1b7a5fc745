import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { ListHooks } from '../../observe/list-hooks.ts';
import type { ImageUpdate, Notes, TaskMemory, TaskStore } from '../../state/store.ts';
import { resumedSweep } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { restartSnapshot } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import {
  keyGaps,
  liveKeysAfter,
  liveKeysIn,
  liveKeysOf,
  liveKeysText,
} from './live-key-tallies.ts';
import type { LiveKeyTallies } from './live-key-tallies.ts';
import { isTopicRecreated } from './detect-lost-events.ts';
import { offsetTexts, restore, storedSweep, withIds } from './restore.ts';
import type { Restored, RestoreOptions } from './restore.ts';
import type { FencedSink, Message } from '../../sinks/sink.ts';
import { expectNotEnded, expectOwnCursor, openFencedSink, withSinkBounds } from './task-claim.ts';
import { isEpochError } from '../../kafka/client/kafka-error.ts';
import { asUnknownOutcome, fencedError } from '../../sinks/producer/fencing.ts';
import type { TaskClaimOptions } from './task-claim.ts';

export interface CheckpointOptions extends RestoreOptions, TaskClaimOptions {
  /** Whether single records can be requested by key. */
  readonly canRequestRecords: boolean;
  readonly scheduler: SchedulerLike;
  readonly hooks?: Pick<ListHooks, 'onRestored' | 'onLost'>;
}

/** Members of a task's store that code outside the checkpoint may use. Only the checkpoint writes to the store. */
export type StoreReads = Omit<TaskStore, 'memory' | 'put' | 'clear'>;

/**
 * Data that is stored only in the image store on this machine, not in Kafka: the progress of sweeps, and facts about a page, such as its
 * keys.
 */
export interface TaskNotes extends Notes {
  readonly sweep?: SweepProgress;
}

export interface TaskBatch extends TaskNotes {
  readonly messages: readonly Message[];
  readonly images: readonly ImageUpdate[];
  readonly cursor: Pick<
    Cursor,
    'sequence' | 'firstRead' | 'since' | 'newestStamp' | 'keyFields' | 'keyFormat' | 'certificate'
  >;
}

export type Checkpoint = Pick<TaskCheckpoint, keyof TaskCheckpoint>;

/**
 * A claimed task (one list of one account): its cursor, its exclusive right to write, and its stored images (the records as they were
 * published). Calls of `commit` and `storeNotes` must not overlap. After an error of `commit` the checkpoint can't be used any further.
 */
export class TaskCheckpoint {
  readonly store: StoreReads;
  readonly #options: CheckpointOptions;
  readonly #sink: FencedSink;
  #state: TaskState;

  /**
   * @param state State of the restored task. The cursor in it is not committed yet: {@link openCheckpoint} commits it, which claims the
   * task.
   */
  constructor(options: CheckpointOptions, sink: FencedSink, state: TaskState) {
    this.store = options.store;
    this.#options = options;
    this.#sink = sink;
    this.#state = state;
  }

  /** The newest committed cursor. */
  get cursor(): Cursor {
    return this.#state.cursor;
  }

  /** Progress of sweeps (recurring full scans) as last stored in the image store. If the store is discarded, sweeps begin again. */
  get sweep(): SweepProgress {
    return this.#state.sweep;
  }

  /**
   * State of the list's topic after the newest commit, for each partition: count and digest of its live keys (`keys`), and its end offset
   * (`ends`).
   */
  get liveKeys(): { readonly keys: LiveKeyTallies; readonly ends: TaskMemory['ends'] } {
    return { keys: this.#state.live, ends: this.#state.memory.ends };
  }

  get schemaIds(): readonly number[] {
    return this.#state.memory.schemaIds;
  }

  /**
   * Returns the current number of partitions of the list's topic.
   *
   * @throws CellarstreamError `KAFKA_UNREACHABLE`, or with the code of another Kafka failure.
   */
  async partitions(): Promise<number> {
    return (await this.#sink.bounds(this.#options.names.topic)).size;
  }

  /**
   * Publishes the batch's messages and the task's cursor in one Kafka transaction. Then stores the batch's images (records as they were
   * published) and notes on this machine.
   *
   * @throws CellarstreamError `COMMIT_FAILED` if the outcome is unknown, or if the topic was deleted and recreated meanwhile; errors of
   * Kafka and of the image store.
   */
  async commit(batch: TaskBatch): Promise<void> {
    const { memory } = this.#state;
    const { messages, images, cursor: progress, sweep = this.sweep, ...notes } = batch;
    const { store, instance, names } = this.#options;
    const live = liveKeysAfter(this.#state.live, images, (key) => store.sequence(key));
    const reached = { ...this.cursor, ...progress, instance, ends: memory.ends };
    const cursor: Cursor = { ...reached, live: liveKeysText(live, reached) };
    const text = JSON.stringify(cursor);
    const saved: Message = { topic: names.cursorTopic, key: names.task, value: Buffer.from(text) };
    const ends = await asUnknownOutcome(() => this.#sink.commit([...messages, saved]));
    const written = ends.get(names.topic) ?? new Map<number, bigint>();
    await this.#expectSameTopic(written, messages);
    // Consumers follow the messages but no cursors. Images are stored while the messages become visible.
    const visible = messages.length > 0 ? this.#sink.awaitVisible() : undefined;
    const next: TaskMemory = {
      ...memory,
      ends: { ...memory.ends, ...offsetTexts(written) },
      cursorEnd: String(ends.get(names.cursorTopic)?.get(0) ?? memory.cursorEnd),
      cursor: text,
      schemaIds: withIds(memory.schemaIds, images),
      whole: cursor.sequence,
      sweep: JSON.stringify(sweep),
      sweepGeneration: cursor.generation,
    };
    this.#state = { cursor, memory: next, live, sweep };
    await Promise.all([store.put(images, next, notes), visible]);
  }

  /**
   * Stores the progress of sweeps, and facts about a page such as its keys, in the image store on this machine. Commits nothing to Kafka.
   */
  async storeNotes({ sweep = this.sweep, ...notes }: TaskNotes): Promise<void> {
    const memory = { ...this.#state.memory, sweep: JSON.stringify(sweep) };
    this.#state = { ...this.#state, memory, sweep };
    await this.#options.store.put([], memory, notes);
  }

  close(): Promise<void> {
    return this.#sink.close();
  }

  /**
   * Throws if the offsets of a commit show that the topic was deleted and recreated before or during the commit.
   *
   * @throws CellarstreamError `COMMIT_FAILED`.
   */
  async #expectSameTopic(
    written: ReadonlyMap<number, bigint>,
    messages: readonly Message[],
  ): Promise<void> {
    const { memory } = this.#state;
    const { topic } = this.#options.names;
    const count = messages.filter((message) => message.topic === topic).length;
    if (written.size === 0 || !isTopicRecreated(written, memory.ends, count)) return;
    // The new topic lacks all earlier events, which count as lost when the checkpoint is opened again.
    await this.#options.store.put([], { ...memory, lost: true });
    throw new CellarstreamError(
      'COMMIT_FAILED',
      `${topic} was deleted and recreated during a commit: the service publishes all records of the list of this topic again`,
      { context: { topic } },
    );
  }
}

/** State of a task after its newest commit. Before the first commit: the state as restored. */
interface TaskState extends Pick<Restored, 'cursor' | 'memory'> {
  readonly live: LiveKeyTallies;
  readonly sweep: SweepProgress;
}

/**
 * Claims a task: fences the previous owner, reads the cursor, restores the images that the store lacks, and commits a cursor of this
 * instance. If the topic has lost events, that cursor restarts the initial snapshot.
 *
 * @throws CellarstreamError `FENCED` if another process has claimed the task meanwhile; `COMMIT_FAILED` if the task has ended or the
 * outcome of the claim is unknown; the errors of {@link restore}, and others of Kafka and of the image store.
 */
export async function openCheckpoint(options: CheckpointOptions): Promise<Checkpoint> {
  const { log, store, claimState, hooks } = options;
  const before = await expectOwnCursor(options, store.memory());
  claimState.cursorBegin ??= (await log.ends(options.names.cursorTopic)).get(0) ?? 0n;

  const sink = await openFencedSink(options, before);
  try {
    const final = withSinkBounds(sink, options);
    const restored = await restore(final, await expectOwnCursor(final, before));
    const { live, cursor, lostEvents } = await countLiveKeys(restored, options);
    if (claimState.predecessor === undefined)
      claimState.predecessor = restored.hadCursor ? cursor.instance : null;
    const checkpoint = new TaskCheckpoint(options, sink, {
      cursor: claimedCursor(cursor, options),
      memory: { ...restored.memory, lost: false, unchecked: false },
      live,
      sweep: resumedSweep(storedSweep(restored.memory), {
        canRequestRecords: options.canRequestRecords,
        now: options.scheduler.now(),
        byOthers: restored.memory.sweepGeneration !== cursor.generation,
      }),
    });
    expectNotEnded(claimState);
    const claim = { messages: [], images: [], cursor: checkpoint.cursor };
    await checkpoint.commit(claim).catch((error: unknown) => {
      throw isEpochError(error) ? fencedError(error) : error;
    });
    if (lostEvents) hooks?.onLost({ lost: lostEvents });
    return checkpoint;
  } catch (error) {
    await sink.close().catch(() => undefined); // the first error says more
    throw error;
  }
}

function claimedCursor(cursor: Cursor, { instance, scheduler }: CheckpointOptions): Cursor {
  const since = cursor.instance === instance ? cursor.heldSince : undefined;
  const heldSince = since ?? Math.round(scheduler.now());
  return { ...cursor, generation: cursor.generation + 1, heldSince };
}

/**
 * Returns `live`: count and digest of each partition's live keys (newest event not a deletion). If all images were just restored, compares
 * `live` with the tallies in the cursor. If they differ, the topic has lost events: `lostEvents` describes the loss, and the returned cursor
 * restarts the initial snapshot.
 */
async function countLiveKeys(
  { cursor, memory, lostEvents }: Restored,
  { store, scheduler, names: { topic } }: CheckpointOptions,
): Promise<Pick<Restored, 'cursor' | 'lostEvents'> & { readonly live: LiveKeyTallies }> {
  const partitions = cursor.partitions!;
  const recorded = liveKeysIn(cursor, partitions);
  if (recorded && !memory.unchecked) return { cursor, lostEvents, live: recorded };
  const live = await liveKeysOf(store, partitions, scheduler);
  const keys = recorded ? keyGaps(recorded, live) : [];
  if (keys.length === 0) return { cursor, lostEvents, live };
  const lost = { topic, gaps: [], offsets: 0, keys };
  return { cursor: restartSnapshot(cursor), lostEvents: lost, live };
}
