import { CellarstreamError } from '../../core/errors.ts';
import type { ImageUpdate, TaskMemory, TaskStore } from '../../state/store.ts';
import { NO_SWEEP } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import type { Offsets } from '../../sinks/transactional-log.ts';
import { newCursor, NOTHING_READ, parseCursor } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import { lostEvents } from './lost-events.ts';
import type { ListHooks } from '../../observe/list-hooks.ts';
import type { LostEvents } from '../../observe/lost-events.ts';
import { readCursor } from './ownership.ts';
import type { KnownCursor, PlacedTask } from './ownership.ts';
import type { Bounds } from '../../sinks/sink.ts';

/** An event as it is found in the resource's topic, as far as the image store needs it. */
export interface PublishedImage {
  readonly sequence: number;
  readonly image: { readonly schemaId: number; readonly bytes: Buffer } | null;
}

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

/** Of what is in the store: a folder that an older version left is read anew from Kafka. */
const STORE_VERSION = 4;

/** A deletion whose event was compacted away: only its tombstone is left, and it is the last word. */
const TOMBSTONE: PublishedImage = { sequence: Number.MAX_VALUE, image: null };

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
  const { log, store, instance, hooks } = options;
  const { task, topic } = options.place;
  const home = `${STORE_VERSION} ${await log.clusterId()} ${topic}`;
  const bounds = await log.bounds(topic);

  let memory = store.memory();
  if (memory && memory.home !== home) {
    await store.clear(); // another cluster's
    memory = undefined;
  }
  if (memory?.begunBy !== undefined && memory.begunBy !== instance) {
    await store.clear(); // compaction may have come since, and taken deletions of what was read by then
    memory = undefined;
  }
  const nothing = {
    home,
    ends: {},
    cursorEnd: '0',
    cursor: null,
    schemaIds: [],
    whole: 0,
    found: 0,
    sweep: null,
  };
  let known: TaskMemory = memory ?? nothing;
  const parsed = () => (known.cursor === null ? null : parseCursor(known.cursor, task));
  const lost = () => {
    const cursor = parsed();
    return cursor ? lostEvents(topic, bounds, { cursor, memory }) : undefined;
  };

  // Also where the topic ends as it did: one that was made anew may, and only the cursor tells.
  const found = seen ?? (await readCursor(options, known));
  const losses = parsed()?.losses ?? 0;
  known = { ...known, cursor: found.cursor, cursorEnd: found.cursorEnd };
  const { cursor: text, cursorEnd } = known;
  let cursor = parsed() ?? newCursor(instance);
  const whole = cursor.sequence;
  const anew: TaskMemory = { ...nothing, cursor: text, cursorEnd, whole, begunBy: instance };
  if (memory && (cursor.losses ?? 0) > losses) {
    await store.clear(); // of the topic as it was before another process found events lost
    memory = undefined;
  }
  if (!memory) known = anew;

  const loss = lost();
  expectPartitions(cursor, topic, bounds);
  if (loss) {
    await store.clear();
    memory = undefined;
    known = { ...anew, lost: true };
    await store.put([], known);
    const { losses: count = 0 } = cursor;
    cursor = {
      ...cursor,
      firstRead: NOTHING_READ,
      losses: count + 1,
      lostSequence: cursor.sequence,
      starts: startsOf(bounds),
    };
  } else if (text === null) {
    cursor = { ...cursor, starts: startsOf(bounds) }; // what is gone was before all that is known
  }
  let read = await readImages(options, known, bounds);
  if (memory && isBehind(read, cursor)) {
    await store.clear();
    const all = await readImages(options, anew, bounds);
    read = { ...all, restored: read.restored + all.restored };
  }
  if (read.restored > 0) hooks?.onRestored({ images: read.restored });
  // While another task's transaction is open, what was committed to the cursors behind its beginning
  // can't be read; the events that went with it can: no other task writes to their topic.
  const sequence = Math.max(cursor.sequence, read.sequence);
  cursor = { ...cursor, sequence, partitions: bounds.size };
  known = { ...read.known, whole: sequence, found: 0, begunBy: undefined };
  return { known, cursor, hadCursor: text !== null, lost: loss };
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

/** What was read back from the topic. */
interface ReadBack {
  readonly known: TaskMemory;
  /** The highest that was met. */
  readonly sequence: number;
  /** Number of messages. */
  readonly restored: number;
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

/** Stores the images that are in the topic from where the store has come to. */
async function readImages(
  { log, store, place: { topic }, readImage }: RestoreOptions,
  begun: TaskMemory,
  bounds: ReadonlyMap<number, Bounds>,
): Promise<ReadBack> {
  let known = begun;
  // What was published while this store was away was there then: no sweep need have seen it.
  const { number: sweep } = notedSweep(known);
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
        images.push({ key: key.toString(), ...image });
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
  return { known: { ...known, ends: { ...known.ends, ...offsetTexts(ends) } }, sequence, restored };
}

/** How far the sweeps have come. */
export function notedSweep({ sweep }: TaskMemory): SweepProgress {
  // An older version kept less of it.
  return sweep === null
    ? NO_SWEEP
    : { ...NO_SWEEP, ...(JSON.parse(sweep) as Partial<SweepProgress>) };
}

export function offsetTexts(offsets: Offsets): Record<string, string> {
  return Object.fromEntries([...offsets].map(([partition, end]) => [partition, String(end)]));
}

/** Ids of schemas, with those of more images. */
export function withIds(ids: readonly number[], images: readonly ImageUpdate[]): readonly number[] {
  const all = new Set(ids);
  for (const { image } of images) if (image) all.add(image.schemaId);
  return all.size === ids.length ? ids : [...all];
}
