import type { Checkpoint, StoreReads } from '../../src/pipeline/checkpoint/checkpoint.ts';
import { newCursor } from '../../src/pipeline/checkpoint/cursor.ts';
import { payloadDigest } from '../../src/streams/records/page-record.ts';
import { NO_SWEEP } from '../../src/streams/paging/sweep-progress.ts';

/** When the initial snapshot began of a list with a {@link fakeCheckpoint}, ms since the epoch. */
export const SNAPSHOT_AT = Date.parse('2026-01-01T00:00:00Z');

/**
 * The checkpoint of a list after its initial snapshot: it has no records, and its commits succeed. `more` replaces members, `reads` those of
 * its store.
 */
export function fakeCheckpoint(
  more: Partial<Checkpoint> = {},
  reads: Partial<StoreReads> = {},
): Checkpoint {
  const fake: Checkpoint = {
    cursor: {
      ...newCursor('this one'),
      firstRead: { startedAt: SNAPSHOT_AT, position: null, done: true },
      since: SNAPSHOT_AT,
    },
    sweep: { ...NO_SWEEP, beganAt: Date.now() },
    store: {
      get: () => undefined,
      sequence: () => undefined,
      storedKeys: () => ({ keys: [], next: undefined }),
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
      ...reads,
    },
    schemaIds: [],
    liveKeys: { keys: [], ends: {} },
    partitions: () => Promise.resolve(0),
    commit: () => Promise.resolve(),
    storeNotes: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  return Object.defineProperties(fake, Object.getOwnPropertyDescriptors(more)); // getters stay getters
}
