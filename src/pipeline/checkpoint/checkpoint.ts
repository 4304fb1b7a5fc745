import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { ListHooks } from '../../observe/list-hooks.ts';
import type { ImageUpdate, Notes, StoredImage, TaskStore, UnseenKeys } from '../../state/store.ts';
import { takenOver } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { readAnew } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import { keyGaps, liveKeysAfter, liveKeysIn, liveKeysOf, liveKeysText } from './live-keys.ts';
import type { LiveKeys } from './live-keys.ts';
import { leaveFormerId, writtenAs } from './former-id.ts';
import { isMadeAnew } from './lost-events.ts';
import { notedSweep, offsetTexts, withIds } from './read-images.ts';
import { restore } from './restore.ts';
import type { Restored, RestoreOptions } from './restore.ts';
import type { Message } from '../../sinks/sink.ts';
import { asLeftBy, claim, expectMine, openSink } from './ownership.ts';
import { leftUndecided } from '../../sinks/producer/fencing.ts';
import type { TakeOver } from './ownership.ts';

export interface CheckpointOptions extends RestoreOptions, TakeOver {
  /** Whether single records can be asked for; see {@link takenOver}, which the clock is for, too. */
  readonly canBeAsked: boolean;
  readonly scheduler: SchedulerLike;
  readonly hooks?: Pick<ListHooks, 'onRestored' | 'onLost'>;
}

/** A task's place in Kafka: its cursor, its exclusive right to write, and its images beside it. */
export interface Checkpoint {
  /** The newest committed cursor. */
  readonly cursor: Cursor;
  /** How far the sweeps have come, as it was kept last; beside the marks, so it is lost with them. */
  readonly sweep: SweepProgress;
  readonly get: (key: string) => StoredImage | undefined;
  readonly text: TaskStore['text'];
  readonly runFrom: TaskStore['runFrom'];
  readonly digestOf: TaskStore['digestOf'];
  readonly run: TaskStore['run'];
  readonly isReadWithRun: TaskStore['isReadWithRun'];
  /** Number of records that are published and not deleted. */
  readonly count: () => number;
  readonly unread: TaskStore['unread'];
  readonly isUnseen: TaskStore['isUnseen'];
  readonly unseen: (since: number, after: string | undefined) => UnseenKeys;
  readonly isRejected: TaskStore['isRejected'];
  /** What the newest commit has left in the topic: the live keys before where each partition ends. */
  readonly live: () => { readonly keys: LiveKeys; readonly ends: Readonly<Record<string, string>> };
  /** How many partitions the topic has just now. @throws CellarstreamError `KAFKA_UNREACHABLE`, ... */
  readonly partitions: () => Promise<number>;
  /** Ids of the schemas that the images are written in. */
  readonly schemaIds: () => readonly number[];
  /**
   * Publishes messages and cursor in one transaction, then stores the images and notes.
   *
   * @throws CellarstreamError `COMMIT_FAILED`: the outcome is unknown, the log is of no more use and
   * has to be opened again.
   */
  readonly commit: (batch: TaskBatch) => Promise<void>;
  /** Stores notes alone: what nobody has to be told of. */
  readonly keep: (notes: TaskNotes) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** What is kept on this machine alone. */
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
 * Takes a task over: fences whoever had it, reads the cursor and the images that the store has not
 * seen, and claims the task with a commit of its own. Where the topic has lost events the claim says that
 * all is read anew: what the topic still has stays known, the rest is published again.
 *
 * @throws CellarstreamError `FENCED` when a newer process has the task: nothing was taken from it.
 * `TOPIC_CHANGED` as {@link restore}. Otherwise `KAFKA_UNREACHABLE` or `COMMIT_FAILED`.
 */
export async function openCheckpoint(options: CheckpointOptions): Promise<Checkpoint> {
  const { log, store, instance, ownership, canBeAsked, scheduler, hooks } = options;
  const { task, topic, cursorTopic } = options.place;
  const before = await expectMine(options, store.memory());
  ownership.begin ??= (await log.ends(cursorTopic)).get(0) ?? 0n;

  await leaveFormerId(options, before, store.memory());
  const sink = await openSink(options, before);
  try {
    const final = asLeftBy(sink, options);
    const restored = await restore(final, await expectMine(final, before));
    const { known, hadCursor } = restored;
    const counted = await counting(restored, options);
    const { lost } = counted;
    let { cursor, live } = counted;
    if (ownership.predecessor === undefined)
      ownership.predecessor = hadCursor ? cursor.instance : null;
    let memory = known;
    const byOthers = known.sweepGeneration !== cursor.generation;
    let sweep = takenOver(notedSweep(known), { canBeAsked, now: scheduler.now(), byOthers });

    const commit = async (batch: TaskBatch): Promise<void> => {
      const { messages, images, cursor: progress, sweep: swept = sweep, ...notes } = batch;
      const keys = liveKeysAfter(live, images, (key) => store.sequence(key));
      const reached: Cursor = { ...cursor, ...progress, instance, ends: memory.ends };
      const next: Cursor = { ...reached, live: liveKeysText(keys, reached) };
      const text = JSON.stringify(next);
      const saved: Message = { topic: cursorTopic, key: task, value: Buffer.from(text) };
      const ends = await leftUndecided(() => sink.commit([...messages, saved], 'committed'));
      const written = ends.get(topic) ?? new Map<number, bigint>();
      const count = messages.filter((message) => message.topic === topic).length;
      if (written.size > 0 && isMadeAnew(written, memory.ends, count)) {
        await store.put([], { ...memory, lost: true });
        throw madeAnew(topic);
      }
      // Consumers follow the messages, nobody a cursor. Until they can see them the images are stored.
      const visible = messages.length > 0 ? sink.visible() : undefined;
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
    const keep = async ({ sweep: swept = sweep, ...notes }: TaskNotes): Promise<void> => {
      memory = { ...memory, sweep: JSON.stringify(swept) };
      sweep = swept;
      await store.put([], memory, notes);
    };

    const since = cursor.instance === instance ? cursor.heldSince : undefined;
    const heldSince = since ?? Math.round(options.scheduler.now());
    cursor = { ...cursor, generation: cursor.generation + 1, heldSince, ...writtenAs(options) };
    memory = { ...memory, lost: false, unchecked: false };
    await claim(ownership, () => commit({ messages: [], images: [], cursor }));
    if (lost) hooks?.onLost({ lost });
    return {
      get cursor() {
        return cursor;
      },
      get sweep() {
        return sweep;
      },
      get: (key) => store.get(key),
      text: (key) => store.text(key),
      runFrom: (key) => store.runFrom(key),
      digestOf: (bytes) => store.digestOf(bytes),
      run: (id) => store.run(id),
      isReadWithRun: (key, sweep) => store.isReadWithRun(key, sweep),
      count: () => store.count(),
      unread: (keys, sweep) => store.unread(keys, sweep),
      isUnseen: (key, since) => store.isUnseen(key, since),
      unseen: (since, after) => store.unseen(since, after),
      isRejected: (digest) => store.isRejected(digest),
      live: () => ({ keys: live, ends: memory.ends }),
      partitions: async () => (await sink.bounds(topic)).size,
      schemaIds: () => memory.schemaIds,
      commit,
      keep,
      close: () => sink.close(),
    };
  } catch (error) {
    await sink.close().catch(() => undefined); // the first error says more
    throw error;
  }
}

/**
 * The live keys of the topic: as the cursor has them, or counted where that is void. Where the topic was read back they are
 * held against each other; what differs is a loss like any other.
 */
async function counting(
  { cursor, known, lost }: Restored,
  { store, scheduler, place: { topic } }: CheckpointOptions,
): Promise<Pick<Restored, 'cursor' | 'lost'> & { readonly live: LiveKeys }> {
  const partitions = cursor.partitions!;
  const told = liveKeysIn(cursor, partitions);
  if (told && !known.unchecked) return { cursor, lost, live: told };
  const live = await liveKeysOf(store, partitions, scheduler);
  const keys = told ? keyGaps(told, live) : [];
  if (keys.length === 0) return { cursor, lost, live };
  return { cursor: readAnew(cursor), lost: { topic, gaps: [], offsets: 0, keys }, live };
}

/** The events of the commit are there, and those before are not: that is for the next opening to see to. */
function madeAnew(topic: string): CellarstreamError {
  return new CellarstreamError(
    'COMMIT_FAILED',
    `${topic} was deleted and made anew while it was written to: its list is taken over again, and read anew`,
    { context: { topic } },
  );
}
