import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../errors.ts';
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
import { newCursor, parseCursor } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import type { Broker, Offsets } from './broker.ts';
import { isEpochError } from './kafka-error.ts';
import type { Message } from './sink.ts';

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
  /** Set when this process had the task before and lost its producer. */
  readonly lost?: { readonly error: unknown };
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
const STORE_VERSION = 2;

/** How long a process that has just been fenced waits for its replacement to say so in the cursor. */
const CLAIM_GRACE_MS = 3_000;
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
  const { broker, store, task, topic, cursorTopic, instance, transactionalId } = options;
  if (options.lost) await expectMine(options, options.lost.error);

  const sink = await broker.open(transactionalId);
  try {
    const known = await restore(options);
    let cursor = known.cursor ? parseCursor(known.cursor, task) : newCursor(instance);
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

/** A claim that is refused was overtaken by another process that is starting: leave it to that one. */
async function claim(commit: () => Promise<void>): Promise<void> {
  try {
    await commit();
  } catch (error) {
    throw isEpochError(error) ? fenced(error) : error;
  }
}

/** After a lost producer: goes on only while the cursor is still this process's own. */
async function expectMine(options: TaskLogOptions, error: unknown): Promise<void> {
  if (isEpochError(error)) await lastValueFrom(timer(CLAIM_GRACE_MS, options.scheduler));
  const { text } = await readCursor(options, options.store.memory());
  if (text !== null && parseCursor(text, options.task).instance !== options.instance)
    throw fenced(error);
}

function fenced(cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'FENCED',
    'another instance has taken over this account: this one stops. Run one instance an account',
    { cause },
  );
}

/** Keys don't name the account: two accounts in one topic would take each other's records for their own. */
function shared(other: string, cursorTopic: string): CellarstreamError {
  return new CellarstreamError(
    'SETTINGS',
    `${cursorTopic} has a cursor of ${other}: another ACCOUNT_NAME publishes under this TOPIC_PREFIX. Give each account a TOPIC_PREFIX of its own`,
  );
}

function resourceOf(task: string): string {
  return task.slice(task.lastIndexOf('/') + 1);
}

/** Brings the store up to what the topics say, and tells what it knows then. */
async function restore(options: TaskLogOptions): Promise<TaskMemory> {
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
    // reads, and to look for it would need a consumer's group.
    const cursor = await readCursor(options, known);
    known = { ...known, cursor: cursor.text, cursorEnd: String(cursor.end) };
  }
  // What was published while this store was away was there then: no sweep need have seen it.
  const { number: sweep } = noted(known);

  let restored = 0;
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
        images.push({ key: key.toString(), ...(value ? await readImage(value) : TOMBSTONE) });
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
  return { ...known, ends: { ...known.ends, ...offsetTexts(ends) } };
}

/** The newest cursor of this task, and how far the topic was read for it. */
async function readCursor(
  { broker, cursorTopic, task }: TaskLogOptions,
  memory: TaskMemory | undefined,
): Promise<{ text: string | null; end: bigint }> {
  const to = await broker.ends(cursorTopic);
  const end = to.get(0) ?? 0n;
  const seen = BigInt(memory?.cursorEnd ?? 0);
  let text = seen <= end ? (memory?.cursor ?? null) : null;
  await broker.readTail({
    topic: cursorTopic,
    from: new Map([[0, seen <= end ? seen : 0n]]),
    to,
    onMessages: (messages) => {
      for (const { key, value } of messages) {
        if (key === null) continue;
        const name = key.toString();
        if (name === task) text = value?.toString() ?? null;
        else if (name.endsWith(`/${resourceOf(task)}`)) throw shared(name, cursorTopic);
      }
      return Promise.resolve();
    },
  });
  return { text, end };
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
