import { CellarstreamError } from '../../core/errors.ts';
import type { ListHooks } from '../../observe/list-hooks.ts';
import type { LostEvents } from '../../observe/lost-events.ts';
import type { Bounds, Offsets } from '../../kafka/log.ts';
import { keyText } from '../../schemas/events/record-key.ts';
import type { ImageUpdate, TaskMemory, TaskStore } from '../../state/store.ts';
import { NO_SWEEP } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { newCursor, parseCursor, restartSnapshot } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import { detectLostEvents } from './detect-lost-events.ts';
import { readCursor } from './task-claim.ts';
import type { KnownCursor, TaskLog } from './task-claim.ts';

export interface RestoreOptions extends TaskLog {
  readonly store: TaskStore;
  readonly instance: string;
  /** Decodes an event of the topic; not called for tombstones. */
  readonly readImage: (value: Buffer) => Promise<PublishedImage>;
  readonly hooks?: Pick<ListHooks, 'onRestored'>;
}

/** State of a task whose store has been brought up to date with Kafka. */
export interface Restored {
  readonly memory: TaskMemory;
  /**
   * The cursor to resume from, not committed yet: the newest one, or a new one if there is none. After a loss of events, this cursor
   * restarts the initial snapshot.
   */
  readonly cursor: Cursor;
  /** Whether the task already had a committed cursor when the restore began. */
  readonly hadCursor: boolean;
  readonly lostEvents: LostEvents | undefined;
}

/** Version of the store's format. A store with another version is discarded and rebuilt from Kafka. */
const STORE_VERSION = 4;

/**
 * Reads the newest cursor, compares the topic with it, and updates the stored images (records as last published) from the topic. If the
 * topic has lost events, the store is cleared and filled with the images still in the topic.
 *
 * @throws CellarstreamError `TOPIC_CHANGED` if the topic has events and another number of partitions than they were written with;
 * `CURSOR_UNREADABLE` if the cursor can't be parsed; the errors of {@link readCursor}, and others of Kafka and of the image store.
 */
export async function restore(
  options: RestoreOptions,
  seen: KnownCursor | undefined,
): Promise<Restored> {
  const { log, store, instance, hooks } = options;
  const { topic } = options.names;
  const nothing = newTaskMemory(`${STORE_VERSION} ${await log.clusterId()} ${topic}`);
  const bounds = await log.bounds(topic);

  const stored = store.memory();
  const memory = stored && isUsable(stored, nothing.home, instance) ? stored : undefined;
  // Needed even if the end offsets match the store: a recreated topic may end at the same offset, and only the cursor shows it.
  const newestCursor = seen ?? (await readCursor(options, memory ?? nothing));
  const { kept, cursor, lostEvents } = decideRestore(options, memory, newestCursor, bounds);
  const ofCursor = { cursor: newestCursor.cursor, cursorEnd: newestCursor.cursorEnd };
  const emptied = { ...nothing, ...ofCursor, whole: cursor.sequence, begunBy: instance };
  const initialMemory: TaskMemory = kept
    ? { ...kept, ...ofCursor }
    : { ...emptied, ...(lostEvents && { lost: true }) };
  // A process that crashed during its first write has left images without a task memory.
  if (!kept && (stored !== undefined || store.count() > 0)) await store.clear();
  if (lostEvents) await store.put([], initialMemory);

  let read = await restoreImages(options, initialMemory, bounds);
  if (kept && hasMissingEvents(read, cursor)) {
    await store.clear();
    const all = await restoreImages(options, emptied, bounds);
    read = { ...all, restored: read.restored + all.restored };
  }
  if (read.restored > 0) hooks?.onRestored({ images: read.restored });
  // While another task's transaction is open, cursors committed after its start can't be read, but their events can, as no other task
  // writes to their topic. So the store may have newer events than the cursor.
  const { whole, found, begunBy, unchecked = false } = read.memory;
  const sequence = Math.max(cursor.sequence, read.sequence, whole + found);
  return {
    memory: {
      ...read.memory,
      whole: sequence,
      found: 0,
      begunBy: undefined,
      unchecked: begunBy !== undefined || unchecked,
    },
    cursor: { ...cursor, sequence, partitions: bounds.size },
    hadCursor: newestCursor.cursor !== null,
    lostEvents,
  };
}

function newTaskMemory(home: string): TaskMemory {
  const counts = { whole: 0, found: 0 };
  return { home, ends: {}, cursorEnd: '0', cursor: null, schemaIds: [], ...counts, sweep: null };
}

/**
 * Whether the stored images can be used: they belong to this cluster, topic and version of the store, and are not from another process's
 * unfinished restore of the whole topic.
 */
function isUsable(memory: TaskMemory, home: string, instance: string): boolean {
  // The images of an unfinished restore may be of deleted records, whose deletions compaction may have removed from the topic since.
  return memory.home === home && (memory.begunBy ?? instance) === instance;
}

interface RestoreDecision extends Pick<Restored, 'cursor' | 'lostEvents'> {
  /** The stored state of the task, if the images in the store are valid. Undefined if they are not: the store is then cleared. */
  readonly kept: TaskMemory | undefined;
}

/**
 * Compares the stored images, the task's cursor and the topic. Returns the cursor to resume from, the lost events, and whether the stored
 * images are valid.
 *
 * @throws CellarstreamError `TOPIC_CHANGED` if the topic has events and another number of partitions than they were written with;
 * `CURSOR_UNREADABLE` if a cursor can't be parsed.
 */
function decideRestore(
  { instance, names: { task, topic } }: RestoreOptions,
  memory: TaskMemory | undefined,
  newestCursor: KnownCursor,
  bounds: ReadonlyMap<number, Bounds>,
): RestoreDecision {
  const parsed = (text: string | null) => (text === null ? undefined : parseCursor(text, task));
  const newest = parsed(newestCursor.cursor);
  const cursor = newest ?? newCursor(instance);
  const before = parsed(memory?.cursor ?? null);
  // Another process has detected a loss of events since, so the stored images are from before the loss.
  const isOfLostTopic = (cursor.losses ?? 0) > (before?.losses ?? 0);
  const kept = isOfLostTopic ? undefined : memory;
  expectPartitions(cursor, topic, bounds);

  const lostEvents = newest && detectLostEvents(topic, bounds, { cursor: newest, memory: kept });
  const starts = startOffsets(bounds);
  if (lostEvents) {
    return { kept: undefined, cursor: { ...restartSnapshot(cursor), starts }, lostEvents };
  }
  // Without a cursor, the topic may begin above 0 without a loss, as no earlier events are known.
  return { kept, cursor: newest ?? { ...cursor, starts }, lostEvents };
}

/**
 * Whether the stored images lack events that compaction has removed from the topic. If one of these events was a deletion, the record's
 * image would remain in the store.
 */
function hasMissingEvents(
  { memory: { whole, found }, sequence }: RestoredImages,
  cursor: Cursor,
): boolean {
  // Sequences, not times: when tombstones are removed depends on topic settings and on the clocks of producers and brokers.
  return whole + found < Math.max(cursor.sequence, sequence);
}

/** Start offsets of those partitions that do not begin at offset 0. */
function startOffsets(bounds: ReadonlyMap<number, Bounds>): Record<string, string> {
  const starts = [...bounds].flatMap(([at, { low }]) => (low > 0n ? [[at, low] as const] : []));
  return offsetTexts(new Map(starts));
}

/**
 * Checks that the topic still has the number of partitions with which its events were written. With another number, keys map to other
 * partitions.
 *
 * @throws CellarstreamError `TOPIC_CHANGED` if the topic is not empty and has another number of partitions than the cursor says.
 */
export function expectPartitions(
  { partitions }: Cursor,
  topic: string,
  bounds: ReadonlyMap<number, Bounds>,
): void {
  const isEmpty = [...bounds.values()].every(({ low, high }) => low === high);
  if (partitions === undefined || partitions === bounds.size || isEmpty) return;
  throw new CellarstreamError(
    'TOPIC_CHANGED',
    `${topic} has ${bounds.size} partitions, but its events were written with ${partitions}, so the events of a record would be in two of them: delete the topic (the service then creates it with TOPIC_PARTITIONS partitions and publishes all records again, with op r), or set another TOPIC_PREFIX`,
    { context: { topic, found: bounds.size, wanted: partitions } },
  );
}

/** Sequence number and image of an event in the resource's topic. Together with the event's key, they are what the image store needs. */
type PublishedImage = Omit<ImageUpdate, 'key'>;

interface RestoredImages {
  readonly memory: TaskMemory;
  /** Highest sequence number of the events that were read; 0 if none were. */
  readonly sequence: number;
  /** Number of messages that were read from the topic. */
  readonly restored: number;
}

/**
 * Image of a key whose newest message is a tombstone. As the true sequence is unknown, the highest is used: it replaces any stored image.
 */
const TOMBSTONE: PublishedImage = { sequence: Number.MAX_VALUE, image: null };

/** Reads the events' topic to its end, beginning at the offsets that the store has reached, and stores the images. */
async function restoreImages(
  { log, names: { topic }, store, readImage }: RestoreOptions,
  initialMemory: TaskMemory,
  bounds: ReadonlyMap<number, Bounds>,
): Promise<RestoredImages> {
  let known = initialMemory;
  // These records existed when they were published, so they count as seen although no sweep of this store has read them.
  const { number: sweep } = storedSweep(known);
  let restored = 0;
  let sequence = 0;
  const ends = new Map([...bounds].map(([at, { high }]) => [at, high]));
  const from = new Map(
    [...bounds].map(([at, { low }]) => {
      const next = BigInt(known.ends[at] ?? 0);
      return [at, next > low ? next : low];
    }),
  );
  await log.readTail({
    topic,
    from,
    to: ends,
    onMessages: async (messages) => {
      const last = messages.at(-1);
      if (!last) return;
      const images: ImageUpdate[] = [];
      let { found } = known;
      for (const { key, value } of messages) {
        if (key === null) continue;
        const image = value ? await readImage(value) : TOMBSTONE;
        if (image !== TOMBSTONE) {
          sequence = Math.max(sequence, image.sequence);
          if (image.sequence > known.whole) found += 1;
        }
        images.push({ key: keyText(key), ...image });
      }
      restored += images.length;
      const end = String(BigInt(last.offset) + 1n);
      known = {
        ...known,
        ends: { ...known.ends, [last.partition]: end },
        schemaIds: withIds(known.schemaIds, images),
        found,
      };
      const keys = images.flatMap(({ key, image }) => (image ? [key] : []));
      await store.put(images, known, { seen: { keys, sweep, bySweep: false } });
    },
  });
  return {
    memory: { ...known, ends: { ...known.ends, ...offsetTexts(ends) } },
    sequence,
    restored,
  };
}

export function storedSweep({ sweep }: TaskMemory): SweepProgress {
  // Fields that the stored progress lacks get the values of a sweep that has not begun.
  return sweep === null
    ? NO_SWEEP
    : { ...NO_SWEEP, ...(JSON.parse(sweep) as Partial<SweepProgress>) };
}

export function offsetTexts(offsets: Offsets): Record<string, string> {
  return Object.fromEntries([...offsets].map(([partition, end]) => [partition, String(end)]));
}

/** Returns `ids` extended by the schema ids of `images`. Returns the array `ids` itself if there is no new id. */
export function withIds(ids: readonly number[], images: readonly ImageUpdate[]): readonly number[] {
  const all = new Set(ids);
  for (const { image } of images) if (image) all.add(image.schemaId);
  return all.size === ids.length ? ids : [...all];
}
