import { CellarstreamError } from '../../core/errors.ts';
import type { KeyFormat } from '../../schemas/events/record-key.ts';
import type { TallyText } from '../../schemas/events/key-tally.ts';
import type { Position } from '../../streams/paging/anchors.ts';

/** How far a task has come; committed with the events that it led to. */
export interface Cursor {
  readonly version: 1;
  /** The process that wrote it. One that finds another's here has been replaced. */
  readonly instance: string;
  /**
   * One more than that of the cursor that this process took the task over from: the newest one, or
   * that of the newest event.
   */
  readonly generation: number;
  /** When it did so, in epoch ms by its clock. Absent before its claim. */
  readonly heldSince?: number;
  /** Of the newest event: the next one's is higher, whatever became of the state folder. */
  readonly sequence: number;
  readonly firstRead: InitialSnapshot;
  /** Where the next window of modification dates begins (before any lookback): server's ms. */
  readonly since: number | null;
  /**
   * Newest `created_at` or `updated_at` of a published record, in epoch ms. The clock that stamps records may run ahead of the server's
   * `Date`. Absent before the first stamp.
   */
  readonly newestStamp?: number | undefined;
  /** What the records' keys are made of; null until that was chosen. Never changes after. */
  readonly keyFields: readonly string[] | null;
  /** How the keys of its events are written. Never changes. Default `text`. */
  readonly keyFormat?: KeyFormat;
  /** The number of partitions that its events were written with. Absent before the first claim. */
  readonly partitions?: number;
  /**
   * By partition of the topic of its events: where it ended after the commit before this one, and where it
   * began when what is gone from it was last read again (absent: at 0). A topic that ends sooner or begins
   * later has lost events since. Absent before the first claim.
   */
  readonly ends?: Readonly<Record<string, string>>;
  readonly starts?: Readonly<Record<string, string>>;
  /** How often the topic has lost events: images of before are of another topic. Default 0. */
  readonly losses?: number;
  /** The sequence as that was last found: what has been published since has a higher one. Default 0. */
  readonly lostSequence?: number;
  /** The live keys of the topic of its events, this commit's included. Absent before the first claim. */
  readonly live?: LiveKeysText;
  /** The newest certificate, and when it was issued, ms by the clock of who did. Default none was. */
  readonly certificate?: { readonly number: number; readonly at: number };
}

/**
 * Count and digest of the live keys of each partition. Void unless `sequence` and `losses` equal those of the cursor, which differ
 * when the topic holds newer events than the cursor that was found, or has lost some.
 */
export interface LiveKeysText {
  readonly sequence: number;
  readonly losses: number;
  readonly partitions: readonly TallyText[];
}

export interface InitialSnapshot {
  /** The server's time as it began, ms; null until its first page was answered. */
  readonly startedAt: number | null;
  /** Where it goes on; null at the beginning. */
  readonly position: Position | null;
  readonly done: boolean;
  /**
   * Whether a poll that began behind its end, and reaches what is stamped, has been read since, or a sweep. Until then what
   * turns up may be what it has missed: a record that changed meanwhile and moved to where it had been already.
   * Absent before the first page.
   */
  readonly caughtUp?: boolean;
  /**
   * The cursor's `newestStamp` when the topic was found to have lost events, in epoch ms: a record created by then may have been published
   * before the loss, so it is not new. Absent in a first snapshot.
   */
  readonly publishedUpTo?: number | undefined;
}

/** The cursor of a task that has read nothing yet. */
export function newCursor(instance: string): Cursor {
  return {
    version: 1,
    instance,
    generation: 0,
    sequence: 0,
    firstRead: NOTHING_READ,
    since: null,
    keyFields: null,
  };
}

/** Of an initial snapshot that begins. */
export const NOTHING_READ: InitialSnapshot = { startedAt: null, position: null, done: false };

/** Where a topic is found to have lost events: all is read anew, and what is missing published again. */
export function readAnew(cursor: Cursor): Cursor {
  const { losses = 0, sequence, newestStamp: publishedUpTo } = cursor;
  const firstRead = { ...NOTHING_READ, publishedUpTo };
  return { ...cursor, firstRead, losses: losses + 1, lostSequence: sequence };
}

/** @throws CellarstreamError `CURSOR_UNREADABLE` when the text is no cursor of this version. */
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
      `the cursor of ${task} in Kafka was not written by this version: run the version that wrote it, or set another TOPIC_PREFIX`,
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
    return null; // the caller says what is wrong
  }
}
