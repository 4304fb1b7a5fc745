import type { Checkpoint } from '../../src/pipeline/checkpoint/checkpoint.ts';
import { newCursor } from '../../src/pipeline/checkpoint/cursor.ts';
import type { TaskStore } from '../../src/state/store.ts';
import { payloadDigest } from '../../src/streams/records/page-record.ts';
import { NO_SWEEP } from '../../src/streams/paging/sweep-progress.ts';

/** When the initial snapshot began of a list with a {@link fakeCheckpoint}, ms since the epoch. */
export const SNAPSHOT_AT = Date.parse('2026-01-01T00:00:00Z');

/** The checkpoint of a list after its initial snapshot: it has no records, and its commits succeed. `more` replaces members. */
export function fakeCheckpoint(more: Partial<Checkpoint> = {}): Checkpoint {
  const fake: Checkpoint = {
    cursor: {
      ...newCursor('this one'),
      firstRead: { startedAt: SNAPSHOT_AT, position: null, done: true },
      since: SNAPSHOT_AT,
    },
    sweep: { ...NO_SWEEP, beganAt: Date.now() },
    get: () => undefined,
    payloadDigest: () => undefined,
    runFrom: () => undefined,
    digestOf: payloadDigest,
    run: () => undefined,
    isReadWithRun: () => false,
    count: () => 0,
    isRejected: () => false,
    countUnread: () => 0,
    isUnseen: () => false,
    unseen: () => ({ keys: [], next: undefined }),
    schemaIds: () => [],
    liveKeys: () => ({ keys: [], ends: {} }),
    partitions: () => Promise.resolve(0),
    commit: () => Promise.resolve(),
    storeNotes: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  return Object.defineProperties(fake, Object.getOwnPropertyDescriptors(more)); // getters stay getters
}

/** Members of a checkpoint that are those of a store. */
export function readsOf(store: TaskStore): Partial<Checkpoint> {
  return {
    get: (key) => store.get(key),
    payloadDigest: (key) => store.payloadDigest(key),
    runFrom: (key) => store.runFrom(key),
    digestOf: (bytes) => store.digestOf(bytes),
    run: (id) => store.run(id),
    isReadWithRun: (key, number) => store.isReadWithRun(key, number),
    count: () => store.count(),
    isRejected: (digest) => store.isRejected(digest),
    countUnread: (keys, number) => store.countUnread(keys, number),
    isUnseen: (key, since) => store.isUnseen(key, since),
    unseen: (since, after) => store.unseen(since, after),
  };
}
