import { EMPTY, map, ReplaySubject, switchMap, take } from 'rxjs';
import type { Observable } from 'rxjs';
import { MAX_BACK_MS } from '../../streams/http/server-clock.ts';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import type { ScanPage, ScanTrouble } from '../../streams/paging/pages.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import { window } from '../../streams/paging/poll.ts';
import type { Cursor, InitialSnapshot } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import type { ReadLane, SnapshotBatch } from './read-batch.ts';

export interface SnapshotReadsOptions {
  readonly task: Pick<Task, 'account' | 'rules' | 'config' | 'scheduler'>;
  readonly lane: ReadLane;
  readonly clock: ServerClock;
  /** How far reads had come when the task was opened. */
  readonly begun: Pick<Cursor, 'firstRead' | 'since'>;
}

export interface SnapshotReads {
  /** Its pages; none when it was done before. */
  readonly batches$: Observable<SnapshotBatch>;
  /** Where the first window begins, once it is known, ms: before all that changes as the snapshot goes on is stamped. */
  readonly began$: Observable<number>;
  /** Emits when its last page is dealt with; at once when it was done before. */
  readonly done$: Observable<void>;
}

/** Reads the list from where the initial snapshot has come to, to its end. */
export function snapshotReads(options: SnapshotReadsOptions): SnapshotReads {
  const { task, lane, clock, begun } = options;
  const { firstRead, since: polledUntil } = begun;
  const { startFrom } = task.config.poll;
  const began$ = new ReplaySubject<number>(1);
  // Of the clock that stamps records a new process has seen nothing yet.
  if (firstRead.startedAt !== null) began$.next(firstRead.startedAt - MAX_BACK_MS);
  const done$ = new ReplaySubject<void>(1);
  if (firstRead.done) done$.next();

  const isWhole = startFrom === undefined || !task.rules.windowed;
  let settled = true;
  let { startedAt } = firstRead;
  const batch = (page: ScanPage): SnapshotBatch => {
    // A server may never tell its time: then nobody can say what was made after the beginning.
    startedAt ??= beginning(page.answer.serverTime, polledUntil);
    const done = page.next === undefined;
    const snapshot: InitialSnapshot = {
      startedAt,
      position: page.next ?? null,
      done,
      caughtUp: false,
    };
    // As with a sweep: what it may be nobody knows.
    settled &&= recordsOf(page.answer).isReadable;
    const brought = lane.seen(page.answer);
    // An empty list tells nothing of the clock that will stamp its first record.
    began$.next(clock.mark(clock.newest()) ?? (startedAt ?? MAX_BACK_MS) - MAX_BACK_MS);
    const settle = () => {
      brought.settle();
      if (done) done$.next();
    };
    return { lane: 'first-read', ...brought, settle, page, snapshot, isWhole, settled };
  };
  // What is modified later than its end is the polls' to read.
  const dates = () =>
    startFrom === undefined || !task.rules.windowed
      ? {}
      : window(startFrom, clock.latest(task.scheduler.now()));
  const batches$ = task.account.tokens.token$.pipe(
    take(1),
    switchMap(({ serverTime }) => {
      if (firstRead.done) return EMPTY;
      clock.tell(serverTime);
      ({ startedAt } = firstRead);
      const onTrouble = (trouble: ScanTrouble) =>
        void (settled &&= trouble !== 'unsettled' && trouble !== 'cut');
      const from = firstRead.position;
      return lane.scan(dates(), { from, endsAtCut: true, onTrouble }).pipe(map(batch));
    }),
  );
  return { batches$, began$, done$ };
}

/**
 * What was made after it is new. An initial snapshot that begins anew, after earlier polls, takes nothing for new
 * that they can have brought: the clock that stamps records may be ahead.
 */
function beginning(serverTime: number | undefined, since: number | null): number | null {
  return serverTime === undefined ? null : Math.max(serverTime, since ?? -Infinity);
}
