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
}

/** What one task keeps: a cache of what is in Kafka, good to be thrown away at any time. */
export interface TaskStore {
  get(key: string): StoredImage | undefined;
  memory(): TaskMemory | undefined;
  /**
   * Writes images and memory in one transaction. An image is written only if its sequence is
   * higher than the one in place: a process that was paused and replaced can't set it back.
   */
  put(images: readonly ImageUpdate[], memory: TaskMemory): Promise<void>;
  /** Number of images. */
  count(): number;
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

/**
 * Opens the image store in a folder. It is written without waiting for the disk: a killed process
 * loses nothing, and after a killed machine what is missing is read again from Kafka.
 */
export function openStore(folder: string): Store {
  const root: RootDatabase = open({
    path: join(folder, 'images.mdb'),
    maxDbs: 2 * MOST_TASKS,
    overlappingSync: true,
  });
  return {
    task: (name) =>
      taskStore(
        root.openDB<Buffer, string>({ name: `images ${name}`, encoding: 'binary' }),
        root.openDB<TaskMemory, string>({ name: `memory ${name}`, encoding: 'json' }),
      ),
    close: () => root.close(),
  };
}

function taskStore(
  images: Database<Buffer, string>,
  memories: Database<TaskMemory, string>,
): TaskStore {
  return {
    get: (key) => {
      const stored = images.get(key);
      return stored && unpack(stored);
    },
    memory: () => memories.get(MEMORY_KEY),
    put: async (updates, memory) => {
      await images.transaction(() => {
        for (const { key, sequence, image } of updates) {
          const old = images.get(key);
          if (old && unpack(old).sequence >= sequence) continue;
          if (image) void images.put(key, pack(sequence, image.schemaId, image.bytes));
          else void images.remove(key);
        }
        void memories.put(MEMORY_KEY, memory);
      });
    },
    count: () => images.getCount(),
    clear: async () => {
      await Promise.all([images.clearAsync(), memories.clearAsync()]);
    },
  };
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
