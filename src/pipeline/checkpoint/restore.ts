import { CellarstreamError } from '../../core/errors.ts';
import type { ListHooks } from '../../observe/list-hooks.ts';
import type { LostEvents } from '../../observe/lost-events.ts';
import type { Bounds } from '../../sinks/sink.ts';
import type { TaskMemory, TaskStore } from '../../state/store.ts';
import { newCursor, parseCursor, readAnew } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import { lostEvents } from './lost-events.ts';
import { readCursor } from './ownership.ts';
import type { KnownCursor, PlacedTask } from './ownership.ts';
import { offsetTexts, readImages } from './read-images.ts';
import type { PublishedImage, ReadBack } from './read-images.ts';

export interface RestoreOptions extends PlacedTask {
  readonly store: TaskStore;
  readonly instance: string;
  /** Reads an event of the topic; only asked for messages that are not tombstones. */
  readonly readImage: (value: Buffer) => Promise<PublishedImage>;
  readonly hooks?: Pick<ListHooks, 'onRestored'>;
}

/** Where a task stands, with its store brought up to it. */
export interface Restored {
  readonly known: TaskMemory;
  /** The newest that is known. Where events were lost it begins to read anew, which nobody was told yet. */
  readonly cursor: Cursor;
  /** Whether a cursor was there. */
  readonly hadCursor: boolean;
  readonly lost: LostEvents | undefined;
}

/** Version of what the store holds. A folder with another version counts as empty and is rebuilt from Kafka. */
const STORE_VERSION = 4;

/**
 * Finds the newest cursor, holds the topic against it, and brings the store up to what the topic says, from
 * where that begins. What was published and is no longer in the topic is unknown from then on: it is to be
 * read and published again.
 *
 * @throws CellarstreamError `TOPIC_CHANGED` when the topic has another number of partitions than its
 * events were written with.
 */
export async function restore(
  options: RestoreOptions,
  seen: KnownCursor | undefined,
): Promise<Restored> {
  const { log, store, instance, readImage, hooks } = options;
  const { task, topic } = options.place;
  const nothing = nothingStored(`${STORE_VERSION} ${await log.clusterId()} ${topic}`);
  const bounds = await log.bounds(topic);

  const stored = store.memory();
  const memory = stored && isUsable(stored, nothing.home, instance) ? stored : undefined;
  // Also where the topic ends as it did: one that was made anew may, and only the cursor tells.
  const found = seen ?? (await readCursor(options, memory ?? nothing));
  const { isKept, cursor, lost, known, anew } = judge({
    ...{ memory, found, nothing, bounds, task, topic, instance },
  });
  // Who died in its first put has left images without the memory of them.
  if (!isKept && (stored !== undefined || store.count() > 0)) await store.clear();
  if (lost) await store.put([], known);

  const source = { log, topic, store, readImage };
  let read = await readImages(source, known, bounds);
  if (isKept && isBehind(read, cursor)) {
    await store.clear();
    const all = await readImages(source, anew, bounds);
    read = { ...all, restored: read.restored + all.restored };
  }
  if (read.restored > 0) hooks?.onRestored({ images: read.restored });
  // While another task's transaction is open, what was committed to the cursors behind its beginning
  // can't be read; the events that went with it can: no other task writes to their topic. Some may be in the store by now.
  const { whole, found: since } = read.known;
  const sequence = Math.max(cursor.sequence, read.sequence, whole + since);
  const unchecked = isReadBack(read.known);
  return {
    known: { ...read.known, whole: sequence, found: 0, begunBy: undefined, unchecked },
    cursor: { ...cursor, sequence, partitions: bounds.size },
    hadCursor: found.cursor !== null,
    lost,
  };
}

function nothingStored(home: string): TaskMemory {
  const counts = { whole: 0, found: 0 };
  return { home, ends: {}, cursorEnd: '0', cursor: null, schemaIds: [], ...counts, sweep: null };
}

/**
 * Not where the store is of another cluster or topic; nor where another process began to read the topic back: compaction
 * may have come since, and taken deletions of what was read by then.
 */
function isUsable(memory: TaskMemory, home: string, instance: string): boolean {
  const isWhole = memory.begunBy === undefined || memory.begunBy === instance;
  return memory.home === home && isWhole;
}

/** Whether what is in the store is all of the topic, as it was read back. */
function isReadBack({ begunBy, unchecked = false }: TaskMemory): boolean {
  return begunBy !== undefined || unchecked;
}

interface Findings {
  /** What the store says, where it can be used. */
  readonly memory: TaskMemory | undefined;
  readonly found: KnownCursor;
  readonly nothing: TaskMemory;
  /** Of the resource's topic. */
  readonly bounds: ReadonlyMap<number, Bounds>;
  readonly task: string;
  readonly topic: string;
  readonly instance: string;
}

interface Judgement {
  /** Whether the images of the store count. */
  readonly isKept: boolean;
  /** Where the task goes on. */
  readonly cursor: Cursor;
  readonly lost: LostEvents | undefined;
  /** From where on the topic is read back. */
  readonly known: TaskMemory;
  /** The same for a store in which nothing is. */
  readonly anew: TaskMemory;
}

/** Holds store, cursor and topic against each other. @throws CellarstreamError `TOPIC_CHANGED`. */
function judge({ memory, found, nothing, bounds, task, topic, instance }: Findings): Judgement {
  const parsed = (text: string | null) => (text === null ? undefined : parseCursor(text, task));
  const newest = parsed(found.cursor);
  const cursor = newest ?? newCursor(instance);
  const before = parsed(memory?.cursor ?? null);
  // Another process found events lost since: the store is of the topic as it was before.
  const isOfLostTopic = (cursor.losses ?? 0) > (before?.losses ?? 0);
  const kept = isOfLostTopic ? undefined : memory;
  expectPartitions(cursor, topic, bounds);

  const { cursorEnd } = found;
  const ofCursor = { cursor: found.cursor, cursorEnd };
  const anew = { ...nothing, ...ofCursor, whole: cursor.sequence, begunBy: instance };
  const lost = newest && lostEvents(topic, bounds, { cursor: newest, memory: kept });
  const starts = startsOf(bounds);
  if (lost) {
    const known = { ...anew, lost: true };
    return { isKept: false, cursor: { ...readAnew(cursor), starts }, lost, known, anew };
  }
  return {
    isKept: kept !== undefined,
    cursor: newest ?? { ...cursor, starts }, // what is gone was before all that is known
    lost,
    known: kept ? { ...kept, ...ofCursor } : anew,
    anew,
  };
}

/**
 * Whether events are missing between what the images say and what was published since: compaction has taken them. Most
 * are no loss, as the newest image of each record stays. But of a deletion nothing stays, once its tombstone is gone as
 * well: that record would be alive in the images, and be deleted a second time.
 *
 * Sequences tell, and no clock. A tombstone goes when `min.compaction.lag.ms` and then `delete.retention.ms` have passed, but
 * by the producers' clocks and the brokers', with settings that anybody may have changed meanwhile.
 */
function isBehind({ known: { whole, found }, sequence }: ReadBack, cursor: Cursor): boolean {
  return whole + found < Math.max(cursor.sequence, sequence);
}

/** Where partitions begin, of those that don't at 0. */
function startsOf(bounds: ReadonlyMap<number, Bounds>): Record<string, string> {
  const starts = [...bounds].flatMap(([at, { low }]) => (low > 0n ? [[at, low] as const] : []));
  return offsetTexts(new Map(starts));
}

/**
 * With another number keys go to other partitions, and compaction would keep an image of a key in each. An
 * empty topic has none.
 *
 * @throws CellarstreamError `TOPIC_CHANGED`.
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
    `${topic} has ${bounds.size} partitions, but its events were written with ${partitions}, so the events of a record would be in two of them: delete the topic (it is made again with TOPIC_PARTITIONS, and its records come again as r), or set another TOPIC_PREFIX`,
    { context: { topic, found: bounds.size, wanted: partitions } },
  );
}
