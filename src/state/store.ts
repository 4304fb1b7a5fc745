import type { Database } from 'lmdb';
import { damaged, packImage, packJson, runIdIn, saysSeen } from './entries.ts';
import {
  packBytes,
  packMark,
  unpackBytes,
  unpackImage,
  unpackJson,
  unpackMark,
} from './entries.ts';
import type { KeptText, StoredImage } from './entries.ts';
import { openImageFile } from './image-file.ts';
import type { ImageFile, OnDiscarded } from './image-file.ts';
import { Marks } from './marks.ts';
import { newSecret, runDigests } from './run-digests.ts';
import { packRun, packRunHead, unpackRun, unpackRunHead } from './run-entries.ts';
import type { Run, RunHead, StoredRun } from './run-entries.ts';

export type { KeptText, StoredImage } from './entries.ts';
export type { Run, RunHead, RunMember } from './run-entries.ts';

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
  /** The images say all that was published up to this sequence. */
  readonly whole: number;
  /** How many later events have been found in the topic so far: while it is read back, else none. */
  readonly found: number;
  /** Who began to read all of the topic back, and has not come to its end: no sequence tells what is missing so far. */
  readonly begunBy?: string | undefined;
  /** How far the sweeps have come, as text. */
  readonly sweep: string | null;
  /** The generation of the cursor as that was written. Default unknown. */
  readonly sweepGeneration?: number;
  /** Whether the topic has lost events, and the newest cursor does not say so yet. Default false. */
  readonly lost?: boolean;
  /** Whether all of the topic was read back, and is not held against the cursor's count of live keys yet. Default false. */
  readonly unchecked?: boolean;
}

/** Keys that were read, and the number of the newest sweep at that time. */
export interface Sighting {
  /** Those that were read one by one. */
  readonly keys: readonly string[];
  /** Ids of runs that were read whole. Default none. */
  readonly runs?: readonly string[];
  readonly sweep: number;
  /** Whether it was that sweep that read them. */
  readonly bySweep: boolean;
}

/** What is kept of a page beside its images. */
export interface Notes {
  readonly seen?: Sighting;
  /** By key, of records that were seen: what their images, as they are stored by then, were sent as. */
  readonly texts?: ReadonlyMap<string, KeptText>;
  /** Digests of records that went to dead letters: 16 bytes each, as `latin1`. */
  readonly rejects?: readonly string[];
  /** What the sweep that has seen the keys knows again as a run from now on. */
  readonly formed?: readonly Run[];
}

/** A stretch of keys that have images. */
export interface KeptKeys {
  /** With the sequence of its newest event each. */
  readonly keys: readonly (readonly [key: string, sequence: number])[];
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
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
 *
 * Every call may fail with `STATE_DAMAGED` or `STATE_FOLDER`, both of which pass: the task is taken
 * over again, with a store that {@link Store.task} gives anew, and what Kafka knows better is read
 * from there.
 */
export interface TaskStore {
  get(key: string): StoredImage | undefined;
  /** Of the newest event of a key that has an image: quick where it has none. */
  sequence(key: string): number | undefined;
  /** All that have images, in order; a stretch behind `after`. */
  kept(after: string | undefined): KeptKeys;
  /** What the image of a key was sent as, if that was kept since it was written. */
  text(key: string): KeptText | undefined;
  /** The run that begins with a key; undefined where none does. */
  runFrom(key: string): StoredRun | undefined;
  /** The digest of a run's bytes, which this store alone can tell: 16 bytes, as `latin1`. */
  digestOf(bytes: Buffer): string;
  /** What was seen of a run; undefined once it is retired: its members are looked at one by one from then on. */
  run(id: string): Pick<RunHead, 'seen' | 'read'> | undefined;
  /** Whether the sweep of this number has read the key with the others of a run. */
  isReadWithRun(key: string, sweep: number): boolean;
  memory(): TaskMemory | undefined;
  /**
   * Writes images, then memory and notes in one transaction. An image is written only if its sequence is
   * higher than the one in place: a process that was paused and replaced can't set it back. The
   * mark of an image that is taken away goes with it.
   *
   * Where there are many images a process that ends meanwhile leaves some without the memory of them: to the next one they
   * are as old as it says, and their events are read once more.
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
  /** Whether a reject of this digest is remembered. */
  isRejected(digest: string): boolean;
  clear(): Promise<void>;
}

export interface Store {
  /**
   * The store of a task, by its name; made when it is absent. If anything that is stored was found to
   * be damaged since the last call, all of it is thrown away first.
   */
  task(name: string): TaskStore;
  close(): Promise<void>;
}

const MEMORY_KEY = 'memory';
const SECRET_KEY = 'secret of digests';
/**
 * Images that are written at one go: lmdb keeps as much memory as its largest transaction took, for as long as the file is
 * open.
 */
const MAX_IMAGES = 100;
/** Rejects of a task that are remembered: some 120 MB on disk, when there are so many. */
const MAX_REJECTS = 1_000_000;
/** Of a stretch of keys: how many are looked at, and found, at most. */
const MAX_LOOKED_AT = 10_000;
const MAX_FOUND = 500;
/** Of a stretch of keys with images, each of which is checked. */
const MAX_KEPT = 2_000;

/**
 * Opens the image store in a folder. It is written without waiting for the disk: a killed process
 * loses nothing, and after a killed machine all is read again from Kafka.
 *
 * @param maxRejects How many rejects of a task are remembered at most; the newest half of them always is.
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
        // Gone from the folder by then: how it is closed is of no more interest.
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
  /** By key: when it was seen last. Every image has one. */
  readonly marks: Database<Buffer, Buffer>;
  /** By id: what marks look at, and the live runs. */
  readonly heads: Database<Buffer, Buffer>;
  readonly runs: Database<Buffer, Buffer>;
  /** By digest. Where one is full the other is emptied, and takes the next: so one never is. */
  readonly rejects: readonly [Database<Buffer, Buffer>, Database<Buffer, Buffer>];
  readonly memories: Database<Buffer, Buffer>;
}

/** Digests and ids are bytes, as `latin1`. */
const digestBytes = (digest: string): Buffer => Buffer.from(digest, 'latin1');
/** All there is to say of a digest is that it is there. */
const THERE = Buffer.of(1);

/** A key as it is stored. lmdb's own way to write texts gives back others where U+0000 to U+0004 are in long ones. */
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
  /** It is kept with the first run: until then nothing has to be known again. */
  let isSecretKept = known !== undefined;
  const keepSecret = () => memories.putSync(bytesOf(SECRET_KEY), packBytes(SECRET_KEY, secret));
  /** All of it or nothing, and at once: what fails is thrown here, and not from lmdb's own thread. */
  const write = (work: () => void): void => {
    try {
      file.use((root) =>
        root.transactionSync(() => {
          work();
          marked.flush();
        }),
      );
    } catch (error) {
      marked.forget(); // some may be of what was not written
      throw error;
    }
    file.written();
  };

  /** Images, as long as none is written: it is asked for with each page. */
  let counted: number | undefined;
  const imageOf = (key: string): StoredImage | undefined => {
    const stored = images.get(bytesOf(key));
    if (stored) return unpackImage(key, stored);
    // A page that lost it would have it published once more, as if it were new.
    if (marked.of(key).hasImage) throw damaged('an image is gone');
    return undefined;
  };
  const putImage = (
    { key, sequence, image }: ImageUpdate,
    texts: ReadonlyMap<string, KeptText> | undefined,
  ) => {
    const old = marked.of(key).hasImage ? imageOf(key) : undefined;
    if (old && old.sequence >= sequence) return;
    if (image) {
      images.putSync(bytesOf(key), packImage(key, { sequence, ...image }));
      marked.written(key, texts?.get(key));
    } else {
      images.removeSync(bytesOf(key));
      marked.removed(key);
    }
  };

  const reject = (digest: string) => {
    const [one, other] = rejects;
    const [newer, older] = isFull(one) ? [other, one] : [one, other];
    newer.putSync(digestBytes(digest), THERE);
    if (isFull(newer)) older.clearSync();
  };
  const isFull = (half: Database) => entriesOf(half) >= maxRejects / 2;

  return {
    get: (key) => read(() => imageOf(key)),
    sequence: (key) => read(() => (marked.of(key).hasImage ? imageOf(key)?.sequence : undefined)),
    kept: (after) =>
      read(() => {
        const range = {
          limit: MAX_KEPT,
          ...(after !== undefined && { start: bytesOf(after), exclusiveStart: true }),
        };
        const keys: [string, number][] = [];
        for (const { key: bytes, value } of images.getRange(range)) {
          const key = bytes.toString();
          keys.push([key, unpackImage(key, value).sequence]);
        }
        return { keys, next: keys.length === MAX_KEPT ? keys.at(-1)![0] : undefined };
      }),
    text: (key) => read(() => marked.of(key).text),
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
    put: (updates, memory, { seen, texts, rejects: digests = [], formed = [] } = {}) =>
      settled(() => {
        if (updates.length > 0) counted = undefined;
        const written = new Set(updates.map(({ key }) => key));
        const keys = new Set(seen?.keys);
        let at = 0;
        for (; updates.length - at > MAX_IMAGES; at += MAX_IMAGES) {
          const some = updates.slice(at, at + MAX_IMAGES);
          write(() => some.forEach((update) => putImage(update, texts)));
        }
        write(() => {
          for (const update of updates.slice(at)) putImage(update, texts);
          // Behind all images: who finds a key marked as read by a sweep finds the sweep's progress beside it.
          if (seen) {
            const { sweep, bySweep, runs: whole = [] } = seen;
            const sighting = { seen: sweep, ...(bySweep && { read: sweep }) };
            for (const id of whole) marked.seeRun(id, sighting);
            for (const key of keys) {
              const text = written.has(key) ? undefined : texts?.get(key);
              marked.see(key, { ...sighting, ...(text && { text }) });
            }
            for (const run of formed) marked.form(run, sweep);
            if (formed.length > 0 && !isSecretKept) keepSecret();
          }
          for (const digest of digests) reject(digest);
          memories.putSync(bytesOf(MEMORY_KEY), packJson(MEMORY_KEY, memory));
        });
        isSecretKept ||= seen !== undefined && formed.length > 0;
        // Their page is dealt with: at rest nothing is remembered.
        marked.forget([...written, ...keys]);
      }),
    count: () => (counted ??= read(() => entriesOf(images))),
    unread: (keys, sweep) =>
      read(() => [...new Set(keys)].filter((key) => marked.sighting(key).read < sweep).length),
    isUnseen: (key, since) => read(() => marked.sighting(key).seen < since),
    unseen: (since, after) =>
      read(() => {
        const keys: string[] = [];
        const range = {
          limit: MAX_LOOKED_AT,
          ...(after !== undefined && { start: bytesOf(after), exclusiveStart: true }),
        };
        const seenRuns = new Map<string, boolean>();
        const isSeenWithRun = (id: string): boolean => {
          const known = seenRuns.get(id) ?? marked.headOf(id).seen >= since;
          seenRuns.set(id, known);
          return known;
        };
        const isSeen = (key: string, packed: Buffer): boolean => {
          if (saysSeen(packed, since)) return true;
          const id = runIdIn(packed);
          if (id !== undefined && isSeenWithRun(id)) return true;
          const { seen, hasImage } = unpackMark(key, packed);
          return seen >= since || !hasImage;
        };
        let looked = 0;
        for (const { key: bytes, value } of marks.getRange(range)) {
          looked += 1;
          const key = bytes.toString();
          if (!isSeen(key, value)) keys.push(key);
          if (keys.length === MAX_FOUND || looked === MAX_LOOKED_AT) return { keys, next: key };
        }
        return { keys, next: undefined };
      }),
    isRejected: (digest) => read(() => rejects.some((half) => half.doesExist(digestBytes(digest)))),
    clear: () =>
      settled(() => {
        counted = undefined;
        write(() => {
          for (const each of [images, marks, heads, runs, ...rejects, memories]) each.clearSync();
          if (isSecretKept) keepSecret();
        });
        marked.forget();
      }),
  };
}

function entriesOf(database: Database): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}

/** What a call comes to as a promise: what it throws is refused. */
function settled(work: () => void): Promise<void> {
  return new Promise((resolve) => {
    work();
    resolve();
  });
}
