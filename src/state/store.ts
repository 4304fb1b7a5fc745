import { open } from 'lmdb';
import type { Database, RootDatabase } from 'lmdb';
import { join } from 'node:path';

/** The last published image of a record. */
export interface StoredImage {
  /** Of the event that published it. */
  readonly sequence: number;
  /** Of the schema that `bytes` are written in. */
  readonly schemaId: number;
  /** The record as Avro, without a header. */
  readonly bytes: Buffer;
}

/** An image to be stored, or null for a record that was deleted. */
export interface ImageUpdate {
  readonly key: string;
  readonly sequence: number;
  readonly image: { readonly schemaId: number; readonly bytes: Buffer } | null;
}

/** What a task knows of Kafka beside its images; plain JSON. */
export interface TaskMemory {
  /** The cluster and topic that the images were published to. */
  readonly home: string;
  /** By partition of the resource's topic: the offset from which on nothing is known. */
  readonly ends: Readonly<Record<string, string>>;
  /** The same of the cursors' topic, as of the last look at it. */
  readonly cursorEnd: string;
  /** The newest cursor known, as it was published. */
  readonly cursor: string | null;
  /** Ids of the schemas that stored images are written in. */
  readonly schemaIds: readonly number[];
  /** How far the sweeps have come, as text. */
  readonly sweep: string | null;
}

/** Keys that were read, and the number of the newest sweep at that time. */
export interface Sighting {
  readonly keys: readonly string[];
  readonly sweep: number;
  /** Whether it was that sweep that read them. */
  readonly bySweep: boolean;
}

/** What is kept of a page beside its images. */
export interface Notes {
  readonly seen?: Sighting;
  /** Digests of records that went to dead letters. */
  readonly rejects?: readonly string[];
}

/** A stretch of keys that have not been seen. */
export interface UnseenKeys {
  readonly keys: readonly string[];
  /** Where to go on looking; undefined at the end. */
  readonly next: string | undefined;
}

/**
 * What one task keeps: images, a cache of what is in Kafka; marks and rejects, which are begun anew when
 * they are lost. Good to be thrown away at any time.
 */
export interface TaskStore {
  get(key: string): StoredImage | undefined;
  memory(): TaskMemory | undefined;
  /**
   * Writes images, memory and notes in one transaction. An image is written only if its sequence is
   * higher than the one in place: a process that was paused and replaced can't set it back. The
   * mark of an image that is taken away goes with it.
   */
  put(images: readonly ImageUpdate[], memory: TaskMemory, notes?: Notes): Promise<void>;
  /** Number of images. */
  count(): number;
  /** How many of these keys, each counted once, the sweep of this number has not read yet. */
  unread(keys: readonly string[], sweep: number): number;
  /** Whether the key was seen neither by the sweep of this number nor by anything since it began. */
  isUnseen(key: string, since: number): boolean;
  /** Keys of images that {@link isUnseen} is true of, in order; a stretch behind `after`. */
  unseen(since: number, after: string | undefined): UnseenKeys;
  /** The newest digests of rejects, the oldest first. */
  rejects(): readonly string[];
  clear(): Promise<void>;
}

export interface Store {
  /** The store of a task, by its name; made when it is absent. */
  task(name: string): TaskStore;
  close(): Promise<void>;
}

const HEADER = 12; // sequence as a double, schema id as an unsigned 32-bit number
const MEMORY_KEY = 'memory';
const MOST_TASKS = 256;
const DATABASES_PER_TASK = 4;
/** Rejects that are remembered. */
const MOST_REJECTS = 10_000;
/** Of a stretch of keys: how many are looked at, and found, at most. */
const MOST_LOOKED_AT = 10_000;
const MOST_FOUND = 500;

/**
 * Opens the image store in a folder. It is written without waiting for the disk: a killed process
 * loses nothing, and after a killed machine what is missing is read again from Kafka.
 */
export function openStore(folder: string): Store {
  const root: RootDatabase = open({
    path: join(folder, 'images.mdb'),
    maxDbs: DATABASES_PER_TASK * MOST_TASKS,
    overlappingSync: true,
  });
  const writing = new Set<Promise<unknown>>();
  let isClosed = false;
  /** lmdb throws where nobody can catch it when it is written to after its end. */
  const write: Write = async (work) => {
    if (isClosed) throw new Error('the image store is closed');
    const written = work();
    writing.add(written);
    try {
      await written;
    } finally {
      writing.delete(written);
    }
  };
  return {
    task: (name) =>
      taskStore(write, {
        images: root.openDB<Buffer, string>({ name: `images ${name}`, encoding: 'binary' }),
        marks: root.openDB<Buffer, string>({ name: `marks ${name}`, encoding: 'binary' }),
        rejects: root.openDB<Reject, number>({ name: `rejects ${name}`, encoding: 'json' }),
        memories: root.openDB<TaskMemory, string>({ name: `memory ${name}`, encoding: 'json' }),
      }),
    close: async () => {
      isClosed = true;
      await Promise.allSettled(writing);
      await root.close();
    },
  };
}

/** Does something that writes; refused once the store is closed. */
type Write = (work: () => Promise<unknown>) => Promise<void>;

/** A digest, and the how manieth reject it was. */
type Reject = readonly [nth: number, digest: string];

interface Databases {
  readonly images: Database<Buffer, string>;
  /** By key: when it was seen last. Every image has one. */
  readonly marks: Database<Buffer, string>;
  /** A ring: the newest takes the place of the oldest. */
  readonly rejects: Database<Reject, number>;
  readonly memories: Database<TaskMemory, string>;
}

function taskStore(write: Write, { images, marks, rejects, memories }: Databases): TaskStore {
  const known = () => [...rejects.getRange()].map(({ value }) => value).sort(([a], [b]) => a - b);
  let rejected = (known().at(-1)?.[0] ?? -1) + 1;

  const markOf = (key: string): Mark => {
    const stored = marks.get(key);
    return stored ? unpackMark(stored) : UNMARKED;
  };
  const mark = (key: string, { sweep, bySweep }: Sighting) => {
    const old = marks.get(key);
    const { seen, read } = old ? unpackMark(old) : UNMARKED;
    const next = { seen: Math.max(seen, sweep), read: bySweep ? sweep : read };
    if (!old || next.seen !== seen || next.read !== read) void marks.put(key, packMark(next));
  };

  return {
    get: (key) => {
      const stored = images.get(key);
      return stored && unpack(stored);
    },
    memory: () => memories.get(MEMORY_KEY),
    put: (updates, memory, { seen, rejects: digests = [] } = {}) =>
      write(() =>
        images.transaction(() => {
          for (const { key, sequence, image } of updates) {
            const old = images.get(key);
            if (old && unpack(old).sequence >= sequence) continue;
            if (image) void images.put(key, pack(sequence, image.schemaId, image.bytes));
            else {
              void images.remove(key);
              void marks.remove(key);
            }
          }
          for (const key of seen?.keys ?? []) mark(key, seen!);
          for (const digest of digests) {
            void rejects.put(rejected % MOST_REJECTS, [rejected, digest]);
            rejected += 1;
          }
          void memories.put(MEMORY_KEY, memory);
        }),
      ),
    count: () => images.getCount(),
    unread: (keys, sweep) => [...new Set(keys)].filter((key) => markOf(key).read < sweep).length,
    isUnseen: (key, since) => markOf(key).seen < since,
    unseen: (since, after) => {
      const keys: string[] = [];
      const range = {
        limit: MOST_LOOKED_AT,
        ...(after !== undefined && { start: after, exclusiveStart: true }),
      };
      let looked = 0;
      for (const { key, value } of marks.getRange(range)) {
        looked += 1;
        if (unpackMark(value).seen < since && images.doesExist(key)) keys.push(key);
        if (keys.length === MOST_FOUND || looked === MOST_LOOKED_AT) return { keys, next: key };
      }
      return { keys, next: undefined };
    },
    rejects: () => known().map(([, digest]) => digest),
    clear: async () => {
      const all = [images, marks, rejects, memories];
      await write(() => Promise.all(all.map((database) => database.clearAsync())));
      rejected = 0;
    },
  };
}

/** Numbers of sweeps: at the time of the newest sighting, and of the newest sweep that read it. */
interface Mark {
  readonly seen: number;
  readonly read: number;
}

const UNMARKED: Mark = { seen: 0, read: 0 };

function packMark({ seen, read }: Mark): Buffer {
  const packed = Buffer.allocUnsafe(8);
  packed.writeUInt32BE(seen, 0);
  packed.writeUInt32BE(read, 4);
  return packed;
}

function unpackMark(packed: Buffer): Mark {
  return { seen: packed.readUInt32BE(0), read: packed.readUInt32BE(4) };
}

function pack(sequence: number, schemaId: number, bytes: Buffer): Buffer {
  const packed = Buffer.allocUnsafe(HEADER + bytes.length);
  packed.writeDoubleBE(sequence, 0);
  packed.writeUInt32BE(schemaId, 8);
  bytes.copy(packed, HEADER);
  return packed;
}

function unpack(packed: Buffer): StoredImage {
  return {
    sequence: packed.readDoubleBE(0),
    schemaId: packed.readUInt32BE(8),
    bytes: packed.subarray(HEADER),
  };
}
