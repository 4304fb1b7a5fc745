import { CellarstreamError } from '../../core/errors.ts';
import type { KeyFormat } from '../../schemas/events/record-key.ts';
import type { TallyText } from '../../schemas/events/key-tally.ts';
import type { Position } from '../../streams/paging/anchors.ts';

/** Progress of a task (one list of one account). Committed in one transaction with the events that it covers. */
export interface Cursor {
  readonly version: 1;
  /** Id of the instance that wrote the cursor: the owner of the task. */
  readonly instance: string;
  /** Number of times that the task has been claimed so far. Repeated claims by the same instance, for example after an error, count too. */
  readonly generation: number;
  /**
   * When `instance` became the owner of the task, in epoch ms by its own clock. A later claim by the same instance does not change the
   * time. Absent before the first claim.
   */
  readonly heldSince?: number;
  /** Sequence number of the newest event. Later events have higher numbers, even after the state folder was deleted. */
  readonly sequence: number;
  readonly firstRead: InitialSnapshot;
  /**
   * Start of the next poll window, before the lookback is subtracted, in epoch ms by the server's clock; null before the first poll is
   * complete.
   */
  readonly since: number | null;
  /**
   * Newest creation or modification time of a published record, in epoch ms. It may be later than the server's `Date`. Absent until a
   * record with such a time is published.
   */
  readonly newestStamp?: number | undefined;
  /** Fields that form the keys of the records; null until they are chosen, then fixed. */
  readonly keyFields: readonly string[] | null;
  /** Format of the keys of events, fixed once the key fields are chosen. Default `text`. */
  readonly keyFormat?: KeyFormat;
  /** Number of partitions that the events were written with. Absent before the task was first claimed. */
  readonly partitions?: number;
  /**
   * End offset of each partition of the events' topic before this cursor's own commit. A partition that ends below this offset has lost
   * events.
   */
  readonly ends?: Readonly<Record<string, string>>;
  /**
   * Start offset of each partition of the events' topic when the task was first claimed, or when the offsets last showed a loss of events.
   * Default 0. A partition that begins above this offset has lost events.
   */
  readonly starts?: Readonly<Record<string, string>>;
  /**
   * Number of times that the topic has lost events. A store whose cursor has a smaller number contains images from before the loss, which
   * are not valid. Default 0.
   */
  readonly losses?: number;
  /** The cursor's `sequence` when the newest loss of events was detected. Default 0. */
  readonly lostSequence?: number;
  /** Count and digest of the live keys (newest event not a deletion) in each partition of the events' topic, after this cursor's commit. */
  readonly live?: LiveKeysText;
  /** The newest certificate of a full scan: its number, and when it was issued, in epoch ms by the issuer's clock. */
  readonly certificate?: { readonly number: number; readonly at: number };
}

/**
 * Count and digest of the live keys (newest event not a deletion) of each partition. Valid only for a cursor with the same `sequence` and
 * `losses`.
 */
export interface LiveKeysText {
  readonly sequence: number;
  readonly losses: number;
  readonly partitions: readonly TallyText[];
}

/** Progress of the initial snapshot of a list. */
export interface InitialSnapshot {
  /**
   * Time, in epoch ms by the server's clock, from which on a created record counts as new (see `isNew` in compare-batches.ts). Null before
   * the first page, or if the server sends no `Date`.
   */
  readonly startedAt: number | null;
  /** Position where the snapshot's scan resumes; null before its first page and once it is complete. */
  readonly position: Position | null;
  readonly done: boolean;
  /**
   * Whether polls or sweeps have read all records that the snapshot missed because they moved within the list. Until then, a record without
   * an image may be an old one.
   */
  readonly caughtUp?: boolean;
  /**
   * Newest creation or modification time, in epoch ms, of the records that were published before the newest loss of events. A record that
   * was created no later than this does not count as new. Absent without a loss.
   */
  readonly publishedUpTo?: number | undefined;
}

/** Cursor of a task that has read nothing yet. */
export function newCursor(instance: string): Cursor {
  return {
    version: 1,
    instance,
    generation: 0,
    sequence: 0,
    firstRead: NEW_SNAPSHOT,
    since: null,
    keyFields: null,
  };
}

const NEW_SNAPSHOT: InitialSnapshot = { startedAt: null, position: null, done: false };

/** Returns the cursor after a loss of events: the initial snapshot restarts, and publishes the records again whose events were lost. */
export function restartSnapshot(cursor: Cursor): Cursor {
  const { losses = 0, sequence, newestStamp: publishedUpTo } = cursor;
  const snapshot = { ...NEW_SNAPSHOT, publishedUpTo };
  return { ...cursor, firstRead: snapshot, losses: losses + 1, lostSequence: sequence };
}

/**
 * Parses a cursor from its JSON text. `task` names the task in the error.
 *
 * @throws CellarstreamError `CURSOR_UNREADABLE` if the text is not a cursor that this version supports.
 */
export function parseCursor(text: string, task: string): Cursor {
  const cursor = parse(text);
  if (
    cursor?.version !== 1 ||
    typeof cursor.instance !== 'string' ||
    typeof cursor.generation !== 'number' ||
    typeof cursor.sequence !== 'number' ||
    typeof cursor.firstRead?.done !== 'boolean' ||
    !isTime(cursor.since) ||
    cursor.keyFields === undefined ||
    !isTime(cursor.firstRead.startedAt)
  ) {
    throw new CellarstreamError(
      'CURSOR_UNREADABLE',
      `the cursor of ${task} (its progress, stored in Kafka) was not written by this version of Cellarstream: run the version that wrote it, or set another TOPIC_PREFIX`,
    );
  }
  return cursor as Cursor;
}

function isTime(value: unknown): value is number | null {
  return value === null || Number.isFinite(value);
}

function parse(text: string): Partial<Cursor> | null {
  try {
    return JSON.parse(text) as Partial<Cursor> | null;
  } catch {
    return null; // the caller reports the error
  }
}
