// The image store of a state folder, in lmdb. For each task: images of records, when keys were last seen, rejects and restore state.

import type { Database } from 'lmdb';
import { damagedError, packImage, packJson, runIdIn, isSeenSince } from './entries.ts';
import {
  packBytes,
  packMark,
  unpackBytes,
  unpackImage,
  unpackJson,
  unpackMark,
} from './entries.ts';
import type { StoredPayloadDigest, StoredImage } from './entries.ts';
import { openImageFile } from './image-file.ts';
import type { ImageFile, OnDiscarded } from './image-file.ts';
import { Marks } from './marks.ts';
import { newSecret, runDigests } from './run-digests.ts';
import { packRun, packRunHead, unpackRun, unpackRunHead } from './run-entries.ts';
import type { Run, RunHead, StoredRun } from './run-entries.ts';

export type { StoredPayloadDigest, StoredImage } from './entries.ts';
export type { Run, RunHead, RunMember } from './run-entries.ts';

/** Change of a record's stored image: a new image, or null if the record was deleted. */
export interface ImageUpdate {
  readonly key: string;
  readonly sequence: number;
  readonly image: { readonly schemaId: number; readonly bytes: Buffer } | null;
}

/**
 * State of a task (one list of one account) that is stored with its images, as JSON: its newest cursor, and how far the images were
 * restored from Kafka.
 */
export interface TaskMemory {
  /** Version of the store's format, Kafka cluster and topic of the images. A store with another value counts as empty. */
  readonly home: string;
  /** Kafka offset up to which the images are restored, for each partition of the list's topic. */
  readonly ends: Readonly<Record<string, string>>;
  /** Kafka offset up to which the topic of cursors has been read. */
  readonly cursorEnd: string;
  /** The newest known cursor, as it was published; null if there is none. */
  readonly cursor: string | null;
  /** Registry ids of the schemas of the stored images. */
  readonly schemaIds: readonly number[];
  /** Sequence number up to which the images include every event. */
  readonly whole: number;
  /** Number of events with a higher sequence than `whole` that were read from the topic so far, during a restore; else 0. */
  readonly found: number;
  /**
   * Name of the instance that has begun, and not completed, a restore of the whole topic. Until it is complete, no sequence number says
   * which images are missing.
   */
  readonly begunBy?: string | undefined;
  /** Progress of the task's sweeps (recurring full scans), as text; null if none is stored. */
  readonly sweep: string | null;
  /** Generation of the task's cursor, which counts the task's claims, when `sweep` was written. Default: unknown. */
  readonly sweepGeneration?: number;
  /** Whether the topic has lost events and the published cursor does not record it yet. Default false. */
  readonly lost?: boolean;
  /** Whether the whole topic was restored and the images are not yet compared with the cursor's count of live keys. Default false. */
  readonly unchecked?: boolean;
}

/** Keys that a read of the API showed, and the number of the newest sweep at that time. */
export interface SeenKeys {
  /** Keys of records that were recognized one by one. */
  readonly keys: readonly string[];
  /** Ids of runs (adjacent records of a page) that were recognized as a unit. Default none. */
  readonly runs?: readonly string[];
  readonly sweep: number;
  /** Whether sweep number `sweep` itself read the keys, and not another kind of read, such as a poll. */
  readonly bySweep: boolean;
}

/** Data about a page of records that is stored together with the images of these records. */
export interface Notes {
  readonly seen?: SeenKeys;
  /** Digest of each record's JSON bytes, by key: only for records whose stored image will equal that JSON after this commit. */
  readonly payloadDigests?: ReadonlyMap<string, StoredPayloadDigest>;
  /** Digests of records that were published as dead letters: 16 bytes each, as `latin1`. */
  readonly rejects?: readonly string[];
  /** Runs of adjacent records of the page, which later reads can recognize as a unit by their bytes. */
  readonly newRuns?: readonly Run[];
}

/** Part of the listing of all keys that have a stored image. */
export interface StoredKeys {
  /** Keys, each with the sequence of its newest event. */
  readonly keys: readonly (readonly [key: string, sequence: number])[];
  /** Last key of this part of the listing, to pass as `after` for the next part; undefined at the end. */
  readonly next: string | undefined;
}

/** Part of the listing of all keys that have a stored image and that no read has shown since a given sweep. */
export interface UnseenKeys {
  readonly keys: readonly string[];
  /** Last key that was examined for this part of the listing, to pass as `after` for the next part; undefined at the end. */
  readonly next: string | undefined;
}

/**
 * Local state of one task (one list of one account). It may be deleted at any time: the images of records are a cache of Kafka's content;
 * the marks, which say when keys were last seen, and the digests of rejected records start empty again.
 *
 * Every call may fail with `STATE_DAMAGED` or `STATE_FOLDER`, both of them transient: the task is claimed again, with a new store from
 * {@link Store.task}, and missing images are restored from Kafka.
 */
export interface TaskStore {
  get(key: string): StoredImage | undefined;
  /** Returns the sequence number of a key's newest event if the key has a stored image, else undefined; fast if it has none. */
  sequence(key: string): number | undefined;
  /** Lists keys that have a stored image, in order: one part of the listing, which begins after the key `after`. */
  storedKeys(after: string | undefined): StoredKeys;
  /** Returns the digest of the JSON that the image of a key was made from, if it was stored with the image. */
  payloadDigest(key: string): StoredPayloadDigest | undefined;
  /** Returns the run of adjacent records that begins with this key; undefined if there is none that can still be recognized. */
  runFrom(key: string): StoredRun | undefined;
  /** Returns the digest of the bytes of a run (adjacent records of a page), keyed with a secret of this store: 16 bytes, as `latin1`. */
  digestOf(bytes: Buffer): string;
  /**
   * Returns the numbers of the sweeps when a run of adjacent records was last seen and last read; undefined once the run is retired,
   * because from then on its records are compared one by one.
   */
  run(id: string): Pick<RunHead, 'lastSeenSweep' | 'lastReadSweep'> | undefined;
  /** Whether sweep number `sweep`, or a later one, has read the key as part of a run of adjacent records, and not alone. */
  isReadWithRun(key: string, sweep: number): boolean;
  memory(): TaskMemory | undefined;
  /**
   * Writes the images, then memory and notes in one transaction. An image is written only if its sequence is higher than the stored one, so
   * a paused process that was replaced can't overwrite newer state. When an image is removed, so is its mark.
   *
   * More than 100 images are written in several transactions. A process that ends in between leaves images that the stored memory does not
   * cover: the next process assumes the older state, and reads their events again.
   */
  put(images: readonly ImageUpdate[], memory: TaskMemory, notes?: Notes): Promise<void>;
  /** Returns the number of stored images. */
  count(): number;
  /** Number of distinct keys among `keys` that sweep number `sweep` has not read yet. */
  countUnread(keys: readonly string[], sweep: number): number;
  /** Whether no read of the API, by a sweep or otherwise, has shown the key since sweep number `since` began. */
  isUnseen(key: string, since: number): boolean;
  /**
   * Lists keys that have a stored image and for which {@link isUnseen} is true, in order: one part of the listing, which begins after the
   * key `after`.
   */
  unseen(since: number, after: string | undefined): UnseenKeys;
  /** Whether a rejected record with this digest was stored. */
  isRejected(digest: string): boolean;
  clear(): Promise<void>;
}

export interface Store {
  /**
   * Returns the store of a task by its name, and creates it if it is absent. If stored data was found to be damaged since the last call,
   * deletes all tasks' stores first.
   */
  task(name: string): TaskStore;
  close(): Promise<void>;
}

const MEMORY_KEY = 'memory';
const SECRET_KEY = 'secret of digests';
/**
 * Maximum number of images that one transaction writes. More takes more memory: while the file is open, lmdb retains as much memory as its
 * largest transaction took.
 */
const MAX_IMAGES = 100;
/**
 * Maximum number of digests of rejected records stored for a task, which take some 120 MB on disk. With fewer, dead letters may be
 * published repeatedly.
 */
const MAX_REJECTS = 1_000_000;
/** Maximum number of keys that one call of `unseen` examines. More blocks the event loop for longer. */
const MAX_EXAMINED_KEYS = 10_000;
/** Maximum number of keys that one call of `unseen` returns. */
const MAX_UNSEEN_KEYS = 500;
/**
 * Maximum number of keys that one call of `storedKeys` returns; the checksum of each image is verified. More blocks the event loop for
 * longer.
 */
const MAX_STORED_KEYS = 2_000;

/**
 * Opens the image store in a folder. Writes don't wait for the disk: a killed process loses nothing, and after a power failure everything
 * is restored from Kafka.
 *
 * @param onDiscarded Called with the reason when the images were deleted.
 * @param maxRejects Maximum number of digests of rejected records stored for a task; at least the newest half are retained.
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
      const damage = file.damage();
      if (damage) {
        // The next call deletes the files, so an error of closing them does not matter.
        file.close().catch(() => undefined);
        file = openImageFile(folder, onDiscarded, damage);
      }
      return taskStore(file, name, maxRejects);
    },
    close: () => file.close(),
  };
}

interface Databases {
  readonly images: Database<Buffer, Buffer>;
  /** Marks by key: each says when the key was last seen. Every key with an image has one. */
  readonly marks: Database<Buffer, Buffer>;
  /** Heads of runs by run id: each says when the run was last seen. Includes retired runs to which marks still refer. */
  readonly heads: Database<Buffer, Buffer>;
  readonly runs: Database<Buffer, Buffer>;
  /** Digests of rejected records, in two halves. When one half is full, the other is cleared and receives the next digests. */
  readonly rejects: readonly [Database<Buffer, Buffer>, Database<Buffer, Buffer>];
  readonly memories: Database<Buffer, Buffer>;
}

/** Converts a digest or run id from `latin1` to bytes. */
const digestBytes = (digest: string): Buffer => Buffer.from(digest, 'latin1');
/** Value stored for the digest of a rejected record: only the presence of the entry matters. */
const PRESENT = Buffer.of(1);

/** Encodes a key for lmdb. lmdb's own string encoding does not preserve long keys that contain U+0000 to U+0004. */
const bytesOf = (key: string): Buffer => Buffer.from(key);

function taskStore(file: ImageFile, name: string, maxRejects: number): TaskStore {
  const { images, marks, heads, runs, rejects, memories } = file.use((root): Databases => {
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
      rejects: [database('rejected'), database('rejected too')],
      memories: database('memory'),
    };
  });

  const marked = new Marks({
    mark: (key) => {
      const packed = marks.get(bytesOf(key));
      return packed && unpackMark(key, packed);
    },
    putMark: (key, mark) => marks.putSync(bytesOf(key), packMark(key, mark)),
    removeMark: (key) => marks.removeSync(bytesOf(key)),
    head: (id) => {
      const packed = heads.get(digestBytes(id));
      return packed && unpackRunHead(id, packed);
    },
    putHead: (id, head) => heads.putSync(digestBytes(id), packRunHead(id, head)),
    run: (id) => unpackRun(id, runs.get(digestBytes(id))),
    putRun: (run) => runs.putSync(digestBytes(run.id), packRun(run)),
    removeRun: (id) => runs.removeSync(digestBytes(id)),
    removeHead: (id) => heads.removeSync(digestBytes(id)),
  });
  const read = <T>(work: () => T): T => file.use(work);
  const known = read(() => {
    const stored = memories.get(bytesOf(SECRET_KEY));
    return stored && Buffer.from(unpackBytes(SECRET_KEY, stored));
  });
  const secret = known ?? newSecret();
  /** Whether the secret of the run digests is stored. It is stored with the first run, as no digest has to be recognized before. */
  let isSecretKept = known !== undefined;
  const keepSecret = () => memories.putSync(bytesOf(SECRET_KEY), packBytes(SECRET_KEY, secret));
  /** Runs `work` in a synchronous transaction, so that its errors are thrown to the caller and not on lmdb's own thread. */
  const write = (work: () => void): void => {
    try {
      file.use((root) =>
        root.transactionSync(() => {
          work();
          marked.flush();
        }),
      );
    } catch (error) {
      marked.evict(); // cached marks may include changes that were not written
      throw error;
    }
    file.markWritten();
  };

  /** Cached number of stored images, which is requested for each page; undefined after a write. */
  let counted: number | undefined;
  const imageOf = (key: string): StoredImage | undefined => {
    const stored = images.get(bytesOf(key));
    if (stored) return unpackImage(key, stored);
    // Without this check the record would be published again as if it were new.
    if (marked.markOf(key).hasImage) throw damagedError('an image is missing');
    return undefined;
  };
  const putImage = (
    { key, sequence, image }: ImageUpdate,
    texts: ReadonlyMap<string, StoredPayloadDigest> | undefined,
  ) => {
    const old = marked.markOf(key).hasImage ? imageOf(key) : undefined;
    if (old && old.sequence >= sequence) return;
    if (image) {
      images.putSync(bytesOf(key), packImage(key, { sequence, ...image }));
      marked.imageWritten(key, texts?.get(key));
    } else {
      images.removeSync(bytesOf(key));
      marked.imageRemoved(key);
    }
  };

  const reject = (digest: string) => {
    const [one, other] = rejects;
    const [newer, older] = isFull(one) ? [other, one] : [one, other];
    newer.putSync(digestBytes(digest), PRESENT);
    if (isFull(newer)) older.clearSync();
  };
  const isFull = (half: Database) => entriesOf(half) >= maxRejects / 2;

  return {
    get: (key) => read(() => imageOf(key)),
    sequence: (key) =>
      read(() => (marked.markOf(key).hasImage ? imageOf(key)?.sequence : undefined)),
    storedKeys: (after) =>
      read(() => {
        const range = {
          limit: MAX_STORED_KEYS,
          ...(after !== undefined && { start: bytesOf(after), exclusiveStart: true }),
        };
        const keys: [string, number][] = [];
        for (const { key: bytes, value } of images.getRange(range)) {
          const key = bytes.toString();
          keys.push([key, unpackImage(key, value).sequence]);
        }
        return { keys, next: keys.length === MAX_STORED_KEYS ? keys.at(-1)![0] : undefined };
      }),
    payloadDigest: (key) => read(() => marked.markOf(key).payloadDigest),
    runFrom: (key) => read(() => marked.runFrom(key)),
    digestOf: runDigests(secret),
    run: (id) =>
      read(() => {
        const head = marked.head(id);
        return head?.isLive ? head : undefined;
      }),
    isReadWithRun: (key, sweep) => read(() => marked.isReadWithRun(key, sweep)),
    memory: () =>
      read(() => {
        const stored = memories.get(bytesOf(MEMORY_KEY));
        return stored && unpackJson<TaskMemory>(MEMORY_KEY, stored);
      }),
    put: (updates, memory, { seen, payloadDigests, rejects: digests = [], newRuns = [] } = {}) =>
      asPromise(() => {
        if (updates.length > 0) counted = undefined;
        const written = new Set(updates.map(({ key }) => key));
        const keys = new Set(seen?.keys);
        let at = 0;
        for (; updates.length - at > MAX_IMAGES; at += MAX_IMAGES) {
          const some = updates.slice(at, at + MAX_IMAGES);
          write(() => some.forEach((update) => putImage(update, payloadDigests)));
        }
        write(() => {
          for (const update of updates.slice(at)) putImage(update, payloadDigests);
          // After all images: a key marked as read by a sweep implies that the sweep's progress is stored with it.
          if (seen) {
            const { sweep, bySweep, runs: wholeRuns = [] } = seen;
            const sighting = { lastSeenSweep: sweep, ...(bySweep && { lastReadSweep: sweep }) };
            for (const id of wholeRuns) marked.markRunSeen(id, sighting);
            for (const key of keys) {
              const payloadDigest = written.has(key) ? undefined : payloadDigests?.get(key);
              marked.markSeen(key, { ...sighting, ...(payloadDigest && { payloadDigest }) });
            }
            for (const run of newRuns) marked.addRun(run, sweep);
            if (newRuns.length > 0 && !isSecretKept) keepSecret();
          }
          for (const digest of digests) reject(digest);
          memories.putSync(bytesOf(MEMORY_KEY), packJson(MEMORY_KEY, memory));
        });
        isSecretKept ||= seen !== undefined && newRuns.length > 0;
        // The page is settled, so its marks need not stay in memory.
        marked.evict([...written, ...keys]);
      }),
    count: () => (counted ??= read(() => entriesOf(images))),
    countUnread: (keys, sweep) =>
      read(
        () => [...new Set(keys)].filter((key) => marked.sighting(key).lastReadSweep < sweep).length,
      ),
    isUnseen: (key, since) => read(() => marked.sighting(key).lastSeenSweep < since),
    unseen: (since, after) =>
      read(() => {
        const keys: string[] = [];
        const range = {
          limit: MAX_EXAMINED_KEYS,
          ...(after !== undefined && { start: bytesOf(after), exclusiveStart: true }),
        };
        const seenRuns = new Map<string, boolean>();
        const isSeenWithRun = (id: string): boolean => {
          const known = seenRuns.get(id) ?? marked.headOf(id).lastSeenSweep >= since;
          seenRuns.set(id, known);
          return known;
        };
        const isSeen = (key: string, packed: Buffer): boolean => {
          if (isSeenSince(packed, since)) return true;
          const id = runIdIn(packed);
          if (id !== undefined && isSeenWithRun(id)) return true;
          const { lastSeenSweep, hasImage } = unpackMark(key, packed);
          return lastSeenSweep >= since || !hasImage;
        };
        let looked = 0;
        for (const { key: bytes, value } of marks.getRange(range)) {
          looked += 1;
          const key = bytes.toString();
          if (!isSeen(key, value)) keys.push(key);
          if (keys.length === MAX_UNSEEN_KEYS || looked === MAX_EXAMINED_KEYS)
            return { keys, next: key };
        }
        return { keys, next: undefined };
      }),
    isRejected: (digest) => read(() => rejects.some((half) => half.doesExist(digestBytes(digest)))),
    clear: () =>
      asPromise(() => {
        counted = undefined;
        write(() => {
          for (const each of [images, marks, heads, runs, ...rejects, memories]) each.clearSync();
          if (isSecretKept) keepSecret();
        });
        marked.evict();
      }),
  };
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
