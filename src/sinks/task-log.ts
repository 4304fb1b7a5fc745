import type { SchedulerLike } from 'rxjs';
import type {
  ImageUpdate,
  Notes,
  StoredImage,
  TaskMemory,
  TaskStore,
  UnseenKeys,
} from '../state/store.ts';
import { NO_SWEEP, takenOver } from '../streams/sweep-progress.ts';
import type { SweepProgress } from '../streams/sweep-progress.ts';
import type { Broker, Offsets } from './broker.ts';
import { newCursor, parseCursor } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import type { Message } from './sink.ts';
import { claim, expectMine, graceFor, readCursor } from './tenure.ts';
import type { KnownCursor, Tenure } from './tenure.ts';

/** An event as it is found in the resource's topic, as far as the image store needs it. */
export interface PublishedImage {
  readonly sequence: number;
  readonly image: { readonly schemaId: number; readonly bytes: Buffer } | null;
}

export interface TaskLogOptions {
  readonly broker: Broker;
  readonly store: TaskStore;
  /** `<account>/<resource>`: the cursor's key. */
  readonly task: string;
  readonly topic: string;
  readonly cursorTopic: string;
  readonly transactionalId: string;
  /** Names this process. */
  readonly instance: string;
  /** Reads an event of the topic; only asked for messages that are not tombstones. */
  readonly readImage: (value: Buffer) => Promise<PublishedImage>;
  /** The same object for every log of a task that a process opens. */
  readonly tenure: Tenure;
  /** Whether single records can be asked for; see {@link takenOver}. */
  readonly canBeAsked: boolean;
  readonly scheduler: SchedulerLike;
  readonly onRestored?: (images: number) => void;
}

/** A task's place in Kafka: its cursor, its exclusive right to write, and its images beside it. */
export interface TaskLog {
  /** The newest committed cursor. */
  readonly cursor: Cursor;
  /** How far the sweeps have come, as it was kept last; beside the marks, so it is lost with them. */
  readonly sweep: SweepProgress;
  readonly get: (key: string) => StoredImage | undefined;
  readonly text: TaskStore['text'];
  /** Number of records that are published and not deleted. */
  readonly count: () => number;
  readonly unread: TaskStore['unread'];
  readonly isUnseen: TaskStore['isUnseen'];
  readonly unseen: (since: number, after: string | undefined) => UnseenKeys;
  /** Digests of the newest records that went to dead letters, the oldest first. */
  readonly rejects: () => readonly string[];
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
  readonly cursor: Pick<Cursor, 'sequence' | 'firstRead' | 'since' | 'keyFields'>;
}

/** Of what is in the store: a folder that an older version left is read anew from Kafka. */
const STORE_VERSION = 3;

/** A deletion whose event was compacted away: only its tombstone is left, and it is the last word. */
const TOMBSTONE: PublishedImage = { sequence: Number.MAX_VALUE, image: null };

/**
 * Takes a task over: fences whoever had it, reads the cursor and the images that the store has not
 * seen, and claims the task with a commit of its own.
 *
 * @throws CellarstreamError `FENCED` when a newer process has the task: nothing was taken from it.
 * Otherwise `KAFKA_UNREACHABLE` or `COMMIT_FAILED`.
 */
export async function openTaskLog(options: TaskLogOptions): Promise<TaskLog> {
  const { broker, store, task, topic, cursorTopic, instance, transactionalId, tenure } = options;
  await graceFor(tenure.lost, options.scheduler);
  const before = await expectMine(options, store.memory());
  tenure.begin ??= (await broker.ends(cursorTopic)).get(0) ?? 0n;

  const sink = await broker.open(transactionalId);
  try {
    // Another process may have claimed the task between the look and the opening. Its producer has
    // been fenced just now; it finds its own cursor, opens another one and goes on.
    const { known, sequence } = await restore(options, await expectMine(options, before));
    let cursor = known.cursor ? parseCursor(known.cursor, task) : newCursor(instance);
    // While another task's transaction is open, what was committed to the cursors behind its beginning
    // can't be read; the events that went with it can: no other task writes to their topic.
    cursor = { ...cursor, sequence: Math.max(cursor.sequence, sequence) };
    if (tenure.predecessor === undefined) {
      tenure.predecessor = known.cursor === null ? null : cursor.instance;
    }
    let memory = known;
    let sweep = takenOver(noted(known), options.canBeAsked);

    const commit = async (batch: TaskBatch): Promise<void> => {
      const { messages, images, cursor: progress, sweep: swept = sweep, ...notes } = batch;
      const next: Cursor = { ...cursor, ...progress, instance };
      const text = JSON.stringify(next);
      const ends = await sink.commit([
        ...messages,
        { topic: cursorTopic, key: task, value: Buffer.from(text) },
      ]);
      cursor = next;
      memory = {
        ...memory,
        ends: { ...memory.ends, ...offsetTexts(ends.get(topic) ?? new Map<number, bigint>()) },
        cursorEnd: String(ends.get(cursorTopic)?.get(0) ?? memory.cursorEnd),
        cursor: text,
        schemaIds: withIds(memory.schemaIds, images),
        sweep: JSON.stringify(swept),
      };
      sweep = swept;
      await store.put(images, memory, notes);
    };
    const keep = async ({ sweep: swept = sweep, ...notes }: TaskNotes): Promise<void> => {
      memory = { ...memory, sweep: JSON.stringify(swept) };
      sweep = swept;
      await store.put([], memory, notes);
    };

    cursor = { ...cursor, generation: cursor.generation + 1 };
    await claim(() => commit({ messages: [], images: [], cursor }));
    return {
      get cursor() {
        return cursor;
      },
      get sweep() {
        return sweep;
      },
      get: (key) => store.get(key),
      text: (key) => store.text(key),
      count: () => store.count(),
      unread: (keys, sweep) => store.unread(keys, sweep),
      isUnseen: (key, since) => store.isUnseen(key, since),
      unseen: (since, after) => store.unseen(since, after),
      rejects: () => store.rejects(),
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

/** Brings the store up to what the topics say; tells what it knows then, and the last sequence it read. */
async function restore(
  options: TaskLogOptions,
  found: KnownCursor | undefined,
): Promise<{ readonly known: TaskMemory; readonly sequence: number }> {
  const { broker, store, topic, readImage, onRestored } = options;
  const home = `${STORE_VERSION} ${await broker.clusterId()} ${topic}`;
  const ends = await broker.ends(topic);

  let memory = store.memory();
  const seenEnd = (partition: number) => BigInt(memory?.ends[partition] ?? 0);
  const outlived = [...ends].some(([partition, end]) => seenEnd(partition) > end);
  if (memory && (memory.home !== home || outlived)) {
    await store.clear(); // another cluster's, or of a topic that was made anew
    memory = undefined;
  }
  const nothing = { home, ends: {}, cursorEnd: '0', cursor: null, schemaIds: [], sweep: null };
  let known: TaskMemory = memory ?? nothing;
  const moved = [...ends].some(([partition, end]) => seenEnd(partition) !== end);
  if (moved || known.cursor === null) {
    // Otherwise nothing was published since. A cursor that has moved without an event only spares
    // reads: it is not worth one.
    found = await readCursor(options, found ?? known);
  }
  if (found) known = { ...known, cursor: found.cursor, cursorEnd: found.cursorEnd };
  // What was published while this store was away was there then: no sweep need have seen it.
  const { number: sweep } = noted(known);

  let restored = 0;
  let sequence = 0;
  const from = new Map(Object.entries(known.ends).map(([p, end]) => [Number(p), BigInt(end)]));
  await broker.readTail({
    topic,
    from,
    to: ends,
    onMessages: async (messages) => {
      const last = messages.at(-1);
      if (!last) return;
      const images: ImageUpdate[] = [];
      for (const { key, value } of messages) {
        if (key === null) continue;
        const image = value ? await readImage(value) : TOMBSTONE;
        if (image !== TOMBSTONE) sequence = Math.max(sequence, image.sequence);
        images.push({ key: key.toString(), ...image });
      }
      restored += images.length;
      const end = String(BigInt(last.offset) + 1n);
      known = {
        ...known,
        ends: { ...known.ends, [last.partition]: end },
        schemaIds: withIds(known.schemaIds, images),
      };
      const keys = images.flatMap(({ key, image }) => (image ? [key] : []));
      await store.put(images, known, { seen: { keys, sweep, bySweep: false } });
    },
  });
  if (restored > 0) onRestored?.(restored);
  return { known: { ...known, ends: { ...known.ends, ...offsetTexts(ends) } }, sequence };
}

function noted({ sweep }: TaskMemory): SweepProgress {
  return sweep === null ? NO_SWEEP : (JSON.parse(sweep) as SweepProgress);
}

function offsetTexts(offsets: Offsets): Record<string, string> {
  return Object.fromEntries([...offsets].map(([partition, end]) => [partition, String(end)]));
}

function withIds(ids: readonly number[], images: readonly ImageUpdate[]): readonly number[] {
  const all = new Set(ids);
  for (const { image } of images) if (image) all.add(image.schemaId);
  return all.size === ids.length ? ids : [...all];
}
