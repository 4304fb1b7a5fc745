// The image store of a state folder, in lmdb. For each task: images of records, when keys were last seen, rejects and restore state.

import { randomBytes } from 'node:crypto';
import type { Database, RootDatabase } from 'lmdb';
import {
  damagedError,
  isSeenSince,
  packBytes,
  packImage,
  packMark,
  runIdIn,
  unpackBytes,
  unpackImage,
  unpackMark,
} from './entries.ts';
import type { Sighting, StoredPayloadDigest, StoredImage } from './entries.ts';
import { openImageFile, type ImageFile, type OnDiscarded } from './image-file.ts';
import { Marks, type Table } from './marks.ts';
import { packRun, packRunHead, runDigests, StoredRun, unpackRunHead } from './run-entries.ts';
import type { Run } from './run-entries.ts';

export type { StoredPayloadDigest, StoredImage } from './entries.ts';
export type { Run, RunHead, RunMember } from './run-entries.ts';

/** Change of a record's stored image: a new image, or null if the record was deleted. */
export interface ImageUpdate {
  readonly key: string;
  readonly sequence: number;
  readonly image: { readonly schemaId: number; readonly bytes: Buffer } | null;
}

/** State of a task (one list of one account) that is stored with its images, as JSON. */
export interface TaskMemory {
  /** Store format version, Kafka cluster id and topic, separated by spaces. A store with another value counts as empty. */
  readonly home: string;
  /** For each partition of the list's topic, the Kafka offset up to which (exclusive) the stored images reflect its messages. */
  readonly ends: Readonly<Record<string, string>>;
  /** Kafka offset up to which (exclusive) the cursors' topic has been read. */
  readonly cursorEnd: string;
  /** Newest known cursor (the Kafka message that says how far the task has come), as it was published; null if there is none. */
  readonly cursor: string | null;
  /** Registry ids of the schemas of the stored images. */
  readonly schemaIds: readonly number[];
  /** Sequence number up to which the images include all events of the task. */
  readonly whole: number;
  /**
   * Number of events above sequence number `whole` that an unfinished restore of the images has read from the topic so far; 0 if no restore
   * is unfinished.
   */
  readonly found: number;
  /**
   * Id of the instance that began to restore all images from the topic and has not finished; undefined if there is none. While it is set,
   * images may be missing even for events up to sequence number `whole`.
   */
  readonly begunBy?: string | undefined;
  /** Progress of the task's sweeps (recurring full scans), as JSON; null if none is stored. */
  readonly sweep: string | null;
  /** The cursor's `generation` (number of claims of the task) when `sweep` was stored. Absent if it is unknown. */
  readonly sweepGeneration?: number;
  /** Whether the topic has lost events and the task has not yet committed a cursor that records this loss. Default false. */
  readonly lost?: boolean;
  /**
   * Whether all images were restored from the topic and have not yet been compared with the count and digest in the cursor. Default false.
   */
  readonly unchecked?: boolean;
}

/** Keys that a read of the API showed. */
export interface SeenKeys {
  /** Keys to mark as seen individually: of records outside the `runs`, and of records that a resync publishes again. */
  readonly keys: readonly string[];
  /** Ids of the runs (adjacent records recognized together by their bytes) in the response. Default none. */
  readonly runs?: readonly string[];
  /** Number of the newest sweep that had begun when the keys were read. */
  readonly sweep: number;
  /** Whether sweep number `sweep` itself read these records. False if another kind of read did, such as a poll. */
  readonly bySweep: boolean;
}

/** Data about a page, stored in the same transaction as the last of its images. */
export interface Notes {
  readonly seen?: SeenKeys;
  /** Digests of records' JSON bytes, by key. Only for records that equal their images, as stored before or with this page. */
  readonly payloadDigests?: ReadonlyMap<string, StoredPayloadDigest>;
  /** Digests of records that were published as dead letters: 16 bytes each, as `latin1`. */
  readonly rejects?: readonly string[];
  /** New runs of the page: adjacent records that later reads can recognize together by their bytes. */
  readonly newRuns?: readonly Run[];
}

/** Part of a listing of keys, which are sorted by their UTF-8 bytes. */
export interface KeySlice<Key> {
  readonly keys: readonly Key[];
  /**
   * Last key that was examined for this part; it need not be in `keys`. To be passed as `after` to get the next part of the listing.
   * Undefined in the last part.
   */
  readonly next: string | undefined;
}

export interface Store {
  /**
   * Returns the store of a task by the task's name, and creates it if it is absent. If damage was detected since the last call, deletes the
   * stores of all tasks first.
   */
  task(name: string): TaskStore;
  close(): Promise<void>;
}

const MEMORY_KEY = 'memory';
const SECRET_KEY = 'secret of digests';
/**
 * Maximum number of images that one transaction writes. If it is too large, lmdb retains more memory. If it is too small, large pages are
 * written in many transactions.
 */
const MAX_IMAGES = 100;
/**
 * Maximum number of digests of rejected records that are stored for a task: some 120 MB on disk. If it is too small, dead letters may be
 * published repeatedly.
 */
const MAX_REJECTS = 1_000_000;
/** Maximum number of keys that one call of `unseen` examines. If it is too large, the event loop is blocked for longer. */
const MAX_EXAMINED_KEYS = 10_000;
/** Maximum number of keys that one call of `unseen` returns. */
const MAX_UNSEEN_KEYS = 500;
/**
 * Maximum number of keys that one call of `storedKeys` returns. If it is too large, the event loop is blocked for longer, because the
 * checksum of each image is verified.
 */
const MAX_STORED_KEYS = 2_000;

/**
 * Opens the image store in a folder. Writes don't wait for the disk. If the image file can't be trusted, as after a power failure, it is
 * deleted, and all images are restored from Kafka.
 *
 * @param onDiscarded Called with the reason when the images were deleted.
 * @param maxRejects Maximum number of digests of rejected records stored for a task. Once it is reached, the older half of them is deleted.
 * @throws CellarstreamError `STATE_FOLDER` when the folder can't be read or written.
 */
export function openStore(
  folder: string,
  onDiscarded: OnDiscarded = () => undefined,
  maxRejects = MAX_REJECTS,
): Store {
  let file = openImageFile(folder, onDiscarded);
  return {
    task: (name) => {
      const { damage } = file;
      if (damage) {
        // The next call deletes the files, so an error of closing them does not matter.
        file.close().catch(() => undefined);
        file = openImageFile(folder, onDiscarded, damage);
      }
      return new LmdbTaskStore(file, name, maxRejects);
    },
    close: () => file.close(),
  };
}

/** Converts a digest or run id from `latin1` to bytes. */
const digestBytes = (digest: string): Buffer => Buffer.from(digest, 'latin1');
/** Value of every entry in the databases `rejects`. They are used as sets: only their keys matter. */
const PRESENT = Buffer.of(1);

/** Encodes a key for lmdb. lmdb's own string encoding does not preserve long keys that contain U+0000 to U+0004. */
const bytesOf = (key: string): Buffer => Buffer.from(key);

/** The public members of a {@link LmdbTaskStore}. */
export type TaskStore = Pick<LmdbTaskStore, keyof LmdbTaskStore>;

/**
 * Local state of one task (one list of one account). The state may be deleted at any time: the images of records are restored from Kafka;
 * the marks, which say when keys were last seen, and the digests of rejected records start empty again.
 *
 * Calls may fail with `STATE_DAMAGED` or `STATE_FOLDER`. The task is then claimed again, with a new store from {@link Store.task}.
 */
class LmdbTaskStore {
  /** Returns the digest of the bytes of a run (adjacent records of a page), keyed with a secret of this store: 16 bytes, as `latin1`. */
  readonly digestOf: (bytes: Buffer) => string;
  readonly #file: ImageFile;
  readonly #databases: Databases;
  readonly #marks: Marks;
  readonly #maxRejects: number;
  /**
   * Secret for the digests by which runs (groups of adjacent records) are recognized. It is written to the store together with the first
   * run.
   */
  readonly #secret: Buffer;
  #isSecretStored: boolean;
  /** Cached number of stored images; undefined if they have not been counted since images were last written or deleted. */
  #count: number | undefined;

  constructor(file: ImageFile, name: string, maxRejects: number) {
    this.#file = file;
    this.#databases = file.use((root) => openDatabases(root, name));
    const { marks, heads, runs } = this.#databases;
    this.#marks = new Marks({
      marks: tableIn(marks, bytesOf, packMark, unpackMark),
      heads: tableIn(heads, digestBytes, packRunHead, unpackRunHead),
      runs: tableIn(runs, digestBytes, packRun, (id, packed) => new StoredRun(id, packed)),
    });
    this.#maxRejects = maxRejects;
    const stored = this.#storedMemory(SECRET_KEY);
    this.#isSecretStored = stored !== undefined;
    this.#secret = stored ?? randomBytes(16);
    this.digestOf = runDigests(this.#secret);
  }

  get(key: string): StoredImage | undefined {
    return this.#read(() => this.#image(key));
  }

  /** Returns the sequence number of the newest event of a key; undefined if the key has no stored image. */
  sequence(key: string): number | undefined {
    return this.#read(() => this.#storedSequence(key));
  }

  /**
   * Lists the keys that have a stored image, in key order, each with the sequence number of its newest event. Returns one part of the
   * listing: the keys after `after`, or from the first key on if `after` is undefined.
   */
  storedKeys(after: string | undefined): KeySlice<readonly [key: string, sequence: number]> {
    return this.#read(({ images }) => {
      const keys: [string, number][] = [];
      for (const { key: bytes, value } of images.getRange(rangeAfter(after, MAX_STORED_KEYS))) {
        const key = bytes.toString();
        keys.push([key, unpackImage(key, value).sequence]);
      }
      return { keys, next: keys.length === MAX_STORED_KEYS ? keys.at(-1)![0] : undefined };
    });
  }

  /** Returns the digest stored for a key; undefined if none is. A record whose JSON bytes have this digest equals the stored image. */
  payloadDigest(key: string): StoredPayloadDigest | undefined {
    return this.#read(() => this.#marks.markOf(key).payloadDigest);
  }

  /** Returns the run of adjacent records whose first key is `key`; undefined if there is none, or if it can't be recognized any more. */
  runFrom(key: string): StoredRun | undefined {
    return this.#read(() => this.#marks.runFrom(key));
  }

  /**
   * Returns the numbers of sweeps that say when a run (adjacent records that are recognized together) was last seen, and last read.
   * Undefined if the run is unknown, or can't be recognized any more.
   */
  run(id: string): Sighting | undefined {
    const head = this.#read(() => this.#marks.head(id));
    return head?.isLive ? head : undefined;
  }

  /**
   * Whether sweep number `sweep`, or a later one, has read the run of a key (adjacent records that are recognized together). False if the
   * key is in no run, or if the run can't be recognized any more.
   */
  isReadWithRun(key: string, sweep: number): boolean {
    return this.#read(() => this.#marks.isReadWithRun(key, sweep));
  }

  memory(): TaskMemory | undefined {
    const stored = this.#storedMemory(MEMORY_KEY);
    return stored && (JSON.parse(stored.toString()) as TaskMemory);
  }

  /**
   * Writes changed images, the state of the task (`memory`), and data about the page's records (`notes`). An image is written only if its
   * sequence number is higher than that of the stored image.
   *
   * Images are written in transactions of up to 100. The last transaction also contains `memory` and `notes`. If the process ends between
   * two transactions, some stored images are newer than the stored memory, and the next process reads the events of these images again.
   */
  put(updates: readonly ImageUpdate[], memory: TaskMemory, notes: Notes = {}): Promise<void> {
    return asPromise(() => {
      if (updates.length > 0) this.#count = undefined;
      const { seen, newRuns = [], payloadDigests } = notes;
      let at = 0;
      for (; updates.length - at > MAX_IMAGES; at += MAX_IMAGES) {
        const some = updates.slice(at, at + MAX_IMAGES);
        this.#write(() => some.forEach((update) => this.#putImage(update, payloadDigests)));
      }
      const written = new Set(updates.map(({ key }) => key));
      this.#write(() => {
        for (const update of updates.slice(at)) this.#putImage(update, payloadDigests);
        // After all images: a key marked as read by a sweep implies that the sweep's progress is stored with it.
        this.#putNotes(notes, written);
        this.#putMemory(MEMORY_KEY, Buffer.from(JSON.stringify(memory)));
      });
      this.#isSecretStored ||= seen !== undefined && newRuns.length > 0;
      // The page is settled, so its marks need not stay in memory.
      this.#marks.evict([...written, ...(seen?.keys ?? [])]);
    });
  }

  /** Returns the number of stored images. */
  count(): number {
    return (this.#count ??= this.#read(({ images }) => entriesOf(images)));
  }

  /** Number of distinct keys among `keys` that sweep number `sweep` has not read yet. */
  countUnread(keys: readonly string[], sweep: number): number {
    const isUnread = (key: string) => this.#marks.sighting(key).lastReadSweep < sweep;
    return this.#read(() => [...new Set(keys)].filter(isUnread).length);
  }

  /** Whether no read of any kind has shown the key since sweep number `since` began. */
  isUnseen(key: string, since: number): boolean {
    return this.#read(() => this.#marks.sighting(key).lastSeenSweep < since);
  }

  /**
   * Lists the keys with a stored image that no read has shown since sweep number `since` began, in key order. Returns one part of the
   * listing: the keys after `after`, or from the first key on if `after` is undefined.
   */
  unseen(since: number, after: string | undefined): KeySlice<string> {
    return this.#read(({ marks }) => {
      const isSeen = this.#isSeenSince(since);
      const keys: string[] = [];
      let examined = 0;
      for (const { key: bytes, value } of marks.getRange(rangeAfter(after, MAX_EXAMINED_KEYS))) {
        examined += 1;
        const key = bytes.toString();
        if (!isSeen(key, value)) keys.push(key);
        if (keys.length === MAX_UNSEEN_KEYS || examined === MAX_EXAMINED_KEYS)
          return { keys, next: key };
      }
      return { keys, next: undefined };
    });
  }

  /** Whether the digest of a rejected record is stored. */
  isRejected(digest: string): boolean {
    return this.#read(({ rejects }) => rejects.some((half) => half.doesExist(digestBytes(digest))));
  }

  clear(): Promise<void> {
    return asPromise(() => {
      const { rejects, ...others } = this.#databases;
      this.#count = undefined;
      this.#write(() => {
        for (const each of [...Object.values(others), ...rejects]) each.clearSync();
        if (this.#isSecretStored) this.#putMemory(SECRET_KEY, this.#secret);
      });
      this.#marks.evict();
    });
  }

  // Every access to the databases goes through #read or #write.
  #read<T>(work: (databases: Databases) => T): T {
    return this.#file.use(() => work(this.#databases));
  }

  /** Runs `work` in a synchronous transaction, so that its errors are thrown to the caller and not on the thread of lmdb. */
  #write(work: () => void): void {
    try {
      this.#file.use((root) =>
        root.transactionSync(() => {
          work();
          this.#marks.flush();
        }),
      );
    } catch (error) {
      this.#marks.evict(); // cached marks may include changes that were not written
      throw error;
    }
    this.#file.markWritten();
  }

  #image(key: string): StoredImage | undefined {
    const stored = this.#databases.images.get(bytesOf(key));
    if (stored) return unpackImage(key, stored);
    // Without this check the record would be published again as if it were new.
    if (this.#marks.markOf(key).hasImage) throw damagedError('an image is missing');
    return undefined;
  }

  #storedSequence(key: string): number | undefined {
    // For a key without an image, only the mark is read.
    return this.#marks.markOf(key).hasImage ? this.#image(key)?.sequence : undefined;
  }

  #putImage({ key, sequence, image }: ImageUpdate, digests: Notes['payloadDigests']): void {
    // A paused process must not overwrite the newer state of its successor.
    if ((this.#storedSequence(key) ?? -Infinity) >= sequence) return;
    const { images } = this.#databases;
    if (image) {
      images.putSync(bytesOf(key), packImage(key, { sequence, ...image }));
      this.#marks.imageWritten(key, digests?.get(key));
    } else {
      images.removeSync(bytesOf(key));
      this.#marks.imageRemoved(key);
    }
  }

  /**
   * Writes the data about a page that is stored beside its images: the keys and runs that it showed, digests, and new runs.
   *
   * @param written Keys of the updated images. Their payload digests are already written.
   */
  #putNotes(
    { seen, payloadDigests, rejects = [], newRuns = [] }: Notes,
    written: Set<string>,
  ): void {
    if (seen) {
      const { keys, runs = [], sweep, bySweep } = seen;
      const sighting = { lastSeenSweep: sweep, lastReadSweep: bySweep ? sweep : 0 };
      for (const id of runs) this.#marks.markRunSeen(id, sighting);
      for (const key of new Set(keys)) {
        const payloadDigest = written.has(key) ? undefined : payloadDigests?.get(key);
        this.#marks.markSeen(key, sighting, payloadDigest);
      }
      for (const run of newRuns) this.#marks.addRun(run, sweep);
      if (newRuns.length > 0 && !this.#isSecretStored) this.#putMemory(SECRET_KEY, this.#secret);
    }
    for (const digest of rejects) this.#putReject(digest);
  }

  #storedMemory(key: string): Buffer | undefined {
    return this.#read(({ memories }) => {
      const packed = memories.get(bytesOf(key));
      return packed && Buffer.from(unpackBytes(key, packed));
    });
  }

  #putMemory(key: string, bytes: Buffer): void {
    this.#databases.memories.putSync(bytesOf(key), packBytes(key, bytes));
  }

  #putReject(digest: string): void {
    const isFull = (half: Database) => entriesOf(half) >= this.#maxRejects / 2;
    const [one, other] = this.#databases.rejects;
    const [newer, older] = isFull(one) ? [other, one] : [one, other];
    newer.putSync(digestBytes(digest), PRESENT);
    if (isFull(newer)) older.clearSync();
  }

  /**
   * Returns a function that decides whether any read has shown a key, alone or as a part of its run (adjacent records recognized together),
   * since sweep number `since` began. A key without an image counts as seen.
   */
  #isSeenSince(since: number): (key: string, packedMark: Buffer) => boolean {
    const seenRuns = new Map<string, boolean>();
    const isRunSeen = (id: string): boolean => {
      const isSeen = seenRuns.get(id) ?? this.#marks.headOf(id).lastSeenSweep >= since;
      seenRuns.set(id, isSeen);
      return isSeen;
    };
    return (key, packed) => {
      // For speed, few marks are unpacked completely.
      if (isSeenSince(packed, since)) return true;
      const id = runIdIn(packed);
      if (id !== undefined && isRunSeen(id)) return true;
      const { lastSeenSweep, hasImage } = unpackMark(key, packed);
      return lastSeenSweep >= since || !hasImage;
    };
  }
}

type Databases = ReturnType<typeof openDatabases>;

function openDatabases(root: RootDatabase, name: string) {
  const database = (kind: string) =>
    root.openDB<Buffer, Buffer>({
      name: `${kind} ${name}`,
      encoding: 'binary',
      keyEncoding: 'binary',
    });
  return {
    images: database('images'),
    marks: database('marks'),
    heads: database('run heads'),
    runs: database('runs'),
    /** Two databases with digests of rejected records. One is written to; when it is full, the other is cleared and written to next. */
    rejects: [database('rejected'), database('rejected too')] as const,
    memories: database('memory'),
  };
}

/** Returns a database as a table of values, which `pack` and `unpack` convert to and from their binary format. */
function tableIn<Written, Stored>(
  database: Database<Buffer, Buffer>,
  bytesOfKey: (key: string) => Buffer,
  pack: (key: string, value: Written) => Buffer,
  unpack: (key: string, packed: Buffer) => Stored,
): Table<Written, Stored> {
  return {
    get: (key) => {
      const packed = database.get(bytesOfKey(key));
      return packed && unpack(key, packed);
    },
    set: (key, value) => database.putSync(bytesOfKey(key), pack(key, value)),
    delete: (key) => database.removeSync(bytesOfKey(key)),
  };
}

/** Returns the query for at most `limit` entries of a database after the key `after`; from the first key on if `after` is undefined. */
function rangeAfter(after: string | undefined, limit: number) {
  return after === undefined ? { limit } : { limit, start: bytesOf(after), exclusiveStart: true };
}

function entriesOf(database: Database): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}

/** Runs a synchronous function, and returns a promise that is rejected if the function throws. */
function asPromise(work: () => void): Promise<void> {
  return new Promise((resolve) => {
    work();
    resolve();
  });
}
