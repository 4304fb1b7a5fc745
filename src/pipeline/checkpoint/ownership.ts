import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { TaskMemory } from '../../state/store.ts';
import type { TransactionalLog, FencedSink } from '../../sinks/sink.ts';
import { parseCursor } from './cursor.ts';
import { isEpochError } from '../../sinks/client/kafka-error.ts';
import { CLAIM_GRACE_MS, fenced } from '../../sinks/producer/fencing.ts';
import type { TaskPlace } from '../task-place.ts';

/** A task's place, and the log that it is read from. */
export interface PlacedTask {
  readonly log: TransactionalLog;
  readonly place: TaskPlace;
}

/** Who opens a task. */
export interface TakeOver extends PlacedTask {
  /** Names this process. */
  readonly instance: string;
  /** The same object for every log of a task that a process opens. */
  readonly ownership: Ownership;
}

/** What a process knows of its task from one log to the next. Begins empty. */
export interface Ownership {
  /**
   * The process that had the task before this one; null when nobody had. Set by the first opening
   * that comes so far as to know, whether or not its claim succeeds.
   */
  predecessor?: string | null;
  /**
   * Where the cursors ended before this process first opened a log: what stands before is the word of
   * predecessors.
   */
  begin?: bigint;
  /** The newest that was opened. */
  sink?: FencedSink;
  /** What ended the newest log, or kept it from being opened. Set by whoever opens logs. */
  lost?: unknown;
  /** Whether the task has ended: an opening that is under way leaves it to whoever comes after. */
  isOver?: boolean;
}

/**
 * Opens the task's sink. The first one takes the place of whoever had the task. Those after it take the place of
 * this process's own. Where its epoch is over that can be for a replacement, or for a transaction that ran out of
 * time: brokers don't tell, the cursor does.
 *
 * @throws CellarstreamError `FENCED`.
 */
export async function openSink(
  options: TakeOver & { readonly scheduler: SchedulerLike },
  known: KnownCursor | undefined,
): Promise<FencedSink> {
  const { log, ownership, scheduler } = options;
  const { transactionalId } = options.place;
  expectWanted(ownership);
  try {
    ownership.sink = await log.open(transactionalId, ownership.sink?.producer);
  } catch (error) {
    if (!ownership.sink || !isEpochError(error)) throw error;
    ownership.lost = error;
    await lastValueFrom(timer(CLAIM_GRACE_MS, scheduler));
    await expectMine(options, known);
    ownership.sink = await log.open(transactionalId);
  }
  return ownership.sink;
}

/** A task as the opening of its sink has left it: what that has made final is not to be missed. */
export function asLeftBy<Placed extends PlacedTask>(sink: FencedSink, placed: Placed): Placed {
  const bounds: TransactionalLog['bounds'] = (...asked) => sink.bounds(...asked);
  return { ...placed, log: { ...placed.log, bounds } };
}

/** A claim that is refused was overtaken by another process that is starting: leave it to that one. */
export async function claim(ownership: Ownership, commit: () => Promise<void>): Promise<void> {
  expectWanted(ownership);
  try {
    await commit();
  } catch (error) {
    throw isEpochError(error) ? fenced(error) : error;
  }
}

/** @throws CellarstreamError `COMMIT_FAILED` where the task has ended meanwhile. */
export function expectWanted({ isOver = false }: Ownership): void {
  if (isOver) throw new CellarstreamError('COMMIT_FAILED', 'the task has ended meanwhile');
}

/**
 * After a lost producer, or a claim of which nobody knows whether it was committed: goes on only
 * while the cursor is this process's own, or still a predecessor's.
 */
export async function expectMine(
  options: TakeOver,
  known: KnownCursor | undefined,
): Promise<KnownCursor | undefined> {
  const { predecessor, begin = 0n, lost } = options.ownership;
  if (predecessor === undefined) return undefined;
  const found = await readCursor(options, known);
  if (found.cursor === null || found.offset === undefined || found.offset < begin) return found;
  const { instance } = parseCursor(found.cursor, options.place.task);
  if (instance !== predecessor && instance !== options.instance) throw fenced(lost);
  return found;
}

/** Keys don't name the account: two accounts in one topic would take each other's records for their own. */
function shared(other: string, cursorTopic: string): CellarstreamError {
  return new CellarstreamError(
    'SETTINGS',
    `${cursorTopic} has a cursor of ${other}: another ACCOUNT_NAME publishes under this TOPIC_PREFIX. Give each account a TOPIC_PREFIX of its own`,
  );
}

function resourceOf(task: string): string {
  return task.slice(task.lastIndexOf('/') + 1);
}

/** The newest cursor of this task that is known, and how far the topic was read for it. */
export interface KnownCursor extends Pick<TaskMemory, 'cursor' | 'cursorEnd'> {
  /** Where it stands, if it was read just now. */
  readonly offset?: bigint;
}

/** The newest cursor that was committed by now: of what was read before, or added since. */
export async function readCursor(
  { log, place: { cursorTopic, task, isShared } }: PlacedTask,
  known: KnownCursor | undefined,
): Promise<KnownCursor> {
  const { newest, next } = await newestCursors(log, cursorTopic);
  const other = [...newest.keys()].find(
    (key) => key !== task && key.endsWith(`/${resourceOf(task)}`),
  );
  if (!isShared && other !== undefined) throw shared(other, cursorTopic);
  const seen = BigInt(known?.cursorEnd ?? 0);
  const found = newest.get(task);
  const cursorEnd = String(next);
  // Where the topic was made anew what is known is the word of the one before, until there is a newer one.
  if (!found || (BigInt(found.offset) < seen && seen <= next)) {
    return { cursor: known?.cursor ?? null, cursorEnd };
  }
  return { cursor: found.value.toString(), cursorEnd, offset: BigInt(found.offset) };
}

/** By task, the newest cursor of each. */
export function newestCursors(
  log: TransactionalLog,
  cursorTopic: string,
): ReturnType<TransactionalLog['newest']> {
  return log.newest(
    cursorTopic,
    async () => (await log.bounds(cursorTopic)).get(0) ?? { low: 0n, high: 0n },
  );
}
