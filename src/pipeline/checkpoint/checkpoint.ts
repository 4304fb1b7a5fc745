import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { ListHooks } from '../../observe/list-hooks.ts';
import type { ImageUpdate, Notes, StoredImage, TaskStore, UnseenKeys } from '../../state/store.ts';
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
import { storedSweep, offsetTexts, withIds } from './restore-images.ts';
import { restore } from './restore.ts';
import type { Restored, RestoreOptions } from './restore.ts';
import type { Message } from '../../sinks/sink.ts';
import { withSinkBounds, commitClaim, expectOwnCursor, openFencedSink } from './task-claim.ts';
import { asUnknownOutcome } from '../../sinks/producer/fencing.ts';
import type { TaskClaimOptions } from './task-claim.ts';

export interface CheckpointOptions extends RestoreOptions, TaskClaimOptions {
  /** Whether single records can be requested by key; passed to {@link resumedSweep}, as is the scheduler's time. */
  readonly canRequestRecords: boolean;
  readonly scheduler: SchedulerLike;
  readonly hooks?: Pick<ListHooks, 'onRestored' | 'onLost'>;
}

/** A claimed task: its cursor, its exclusive right to write, and its stored images. */
export interface Checkpoint {
  /** The newest committed cursor. */
  readonly cursor: Cursor;
  /**
   * Progress of sweeps as last stored. It is stored with the marks of keys, which say in which sweep a key was last seen; so both are
   * rebuilt if the store is discarded.
   */
  readonly sweep: SweepProgress;
  readonly get: (key: string) => StoredImage | undefined;
  readonly payloadDigest: TaskStore['payloadDigest'];
  readonly runFrom: TaskStore['runFrom'];
  readonly digestOf: TaskStore['digestOf'];
  readonly run: TaskStore['run'];
  readonly isReadWithRun: TaskStore['isReadWithRun'];
  /** Number of records that are published and not deleted. */
  readonly count: () => number;
  readonly countUnread: TaskStore['countUnread'];
  readonly isUnseen: TaskStore['isUnseen'];
  readonly unseen: (since: number, after: string | undefined) => UnseenKeys;
  readonly isRejected: TaskStore['isRejected'];
  /**
   * Returns the state of the topic after the newest commit: count and digest of the live keys in each partition, and the end offset of each
   * partition up to which they are counted.
   */
  readonly liveKeys: () => {
    readonly keys: LiveKeyTallies;
    readonly ends: Readonly<Record<string, string>>;
  };
  /** Current number of partitions of the topic. @throws CellarstreamError `KAFKA_UNREACHABLE`, ... */
  readonly partitions: () => Promise<number>;
  /** Ids of the schemas that the images are written in. */
  readonly schemaIds: () => readonly number[];
  /**
   * Publishes messages and cursor in one transaction, then stores the images and notes.
   *
   * @throws CellarstreamError `COMMIT_FAILED` if the outcome is unknown: this checkpoint can't be used any further and must be opened
   * again.
   */
  readonly commit: (batch: TaskBatch) => Promise<void>;
  /** Stores notes without a commit to Kafka. */
  readonly storeNotes: (notes: TaskNotes) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** State that is stored only on this machine, not in Kafka. */
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

/**
 * Claims a task: fences the previous owner, reads the cursor and the images that the store lacks, and commits a cursor of its own. If the
 * topic has lost events, that cursor restarts the initial snapshot: images that the topic still has stay known, other records are published
 * again.
 *
 * @throws CellarstreamError `FENCED` if a newer process has claimed the task; that claim stays valid. `TOPIC_CHANGED` as {@link restore}.
 * Otherwise `KAFKA_UNREACHABLE` or `COMMIT_FAILED`.
 */
export async function openCheckpoint(options: CheckpointOptions): Promise<Checkpoint> {
  const { log, store, instance, claimState, canRequestRecords, scheduler, hooks } = options;
  const { task, topic, cursorTopic } = options.names;
  const before = await expectOwnCursor(options, store.memory());
  claimState.cursorBegin ??= (await log.ends(cursorTopic)).get(0) ?? 0n;

  const sink = await openFencedSink(options, before);
  try {
    const final = withSinkBounds(sink, options);
    const restored = await restore(final, await expectOwnCursor(final, before));
    const { memory: known, hadCursor } = restored;
    const counted = await countLiveKeys(restored, options);
    const { lostEvents } = counted;
    let { cursor, live } = counted;
    if (claimState.predecessor === undefined)
      claimState.predecessor = hadCursor ? cursor.instance : null;
    let memory = known;
    const byOthers = known.sweepGeneration !== cursor.generation;
    let sweep = resumedSweep(storedSweep(known), {
      canRequestRecords,
      now: scheduler.now(),
      byOthers,
    });

    const commit = async (batch: TaskBatch): Promise<void> => {
      const { messages, images, cursor: progress, sweep: swept = sweep, ...notes } = batch;
      const keys = liveKeysAfter(live, images, (key) => store.sequence(key));
      const reached: Cursor = { ...cursor, ...progress, instance, ends: memory.ends };
      const next: Cursor = { ...reached, live: liveKeysText(keys, reached) };
      const text = JSON.stringify(next);
      const saved: Message = { topic: cursorTopic, key: task, value: Buffer.from(text) };
      const ends = await asUnknownOutcome(() => sink.commit([...messages, saved], 'committed'));
      const written = ends.get(topic) ?? new Map<number, bigint>();
      const count = messages.filter((message) => message.topic === topic).length;
      if (written.size > 0 && isTopicRecreated(written, memory.ends, count)) {
        await store.put([], { ...memory, lost: true });
        throw topicRecreatedDuringCommit(topic);
      }
      // Consumers follow the messages but no cursors. Images are stored while the messages become visible.
      const visible = messages.length > 0 ? sink.awaitVisible() : undefined;
      cursor = next;
      live = keys;
      memory = {
        ...memory,
        ends: { ...memory.ends, ...offsetTexts(written) },
        cursorEnd: String(ends.get(cursorTopic)?.get(0) ?? memory.cursorEnd),
        cursor: text,
        schemaIds: withIds(memory.schemaIds, images),
        whole: next.sequence,
        sweep: JSON.stringify(swept),
        sweepGeneration: next.generation,
      };
      sweep = swept;
      await Promise.all([store.put(images, memory, notes), visible]);
    };
    const storeNotes = async ({ sweep: swept = sweep, ...notes }: TaskNotes): Promise<void> => {
      memory = { ...memory, sweep: JSON.stringify(swept) };
      sweep = swept;
      await store.put([], memory, notes);
    };

    const since = cursor.instance === instance ? cursor.heldSince : undefined;
    const heldSince = since ?? Math.round(options.scheduler.now());
    cursor = { ...cursor, generation: cursor.generation + 1, heldSince };
    memory = { ...memory, lost: false, unchecked: false };
    await commitClaim(claimState, () => commit({ messages: [], images: [], cursor }));
    if (lostEvents) hooks?.onLost({ lost: lostEvents });
    return {
      get cursor() {
        return cursor;
      },
      get sweep() {
        return sweep;
      },
      get: (key) => store.get(key),
      payloadDigest: (key) => store.payloadDigest(key),
      runFrom: (key) => store.runFrom(key),
      digestOf: (bytes) => store.digestOf(bytes),
      run: (id) => store.run(id),
      isReadWithRun: (key, sweep) => store.isReadWithRun(key, sweep),
      count: () => store.count(),
      countUnread: (keys, sweep) => store.countUnread(keys, sweep),
      isUnseen: (key, since) => store.isUnseen(key, since),
      unseen: (since, after) => store.unseen(since, after),
      isRejected: (digest) => store.isRejected(digest),
      liveKeys: () => ({ keys: live, ends: memory.ends }),
      partitions: async () => (await sink.bounds(topic)).size,
      schemaIds: () => memory.schemaIds,
      commit,
      storeNotes,
      close: () => sink.close(),
    };
  } catch (error) {
    await sink.close().catch(() => undefined); // the first error says more
    throw error;
  }
}

/**
 * Returns the tallies of the topic's live keys: those of the cursor if they are valid, else counted from the store. After the whole topic
 * was read back both are compared; a difference means that the topic has lost events, and restarts the initial snapshot.
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
  return {
    cursor: restartSnapshot(cursor),
    lostEvents: { topic, gaps: [], offsets: 0, keys },
    live,
  };
}

/**
 * Returns the error for a topic that was recreated during a commit: it has the events of the commit but not the earlier ones. Opening the
 * checkpoint again handles the loss.
 */
function topicRecreatedDuringCommit(topic: string): CellarstreamError {
  return new CellarstreamError(
    'COMMIT_FAILED',
    `${topic} was deleted and recreated during a commit: claiming its list again and restarting its initial snapshot`,
    { context: { topic } },
  );
}
