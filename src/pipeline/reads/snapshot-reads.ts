import { concat, concatMap, defer, EMPTY, map, of, ReplaySubject, switchMap, take } from 'rxjs';
import type { Observable } from 'rxjs';
import { isStale } from '../../streams/http/answer-age.ts';
import { DST_MS, MAX_BACK_MS, MAX_ZONE_MS } from '../../streams/http/server-clock.ts';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { BEGINNING } from '../../streams/paging/anchors.ts';
import type { ScanPage, ScanTrouble } from '../../streams/paging/pages.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import { window } from '../../streams/paging/poll.ts';
import type { Cursor, InitialSnapshot } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import { orWhole } from './dated-scan.ts';
import type { ReadLane, SnapshotBatch } from './read-batch.ts';
import { refusedLane } from './refused-lane.ts';

export interface SnapshotReadsOptions {
  readonly task: Pick<Task, 'account' | 'rules' | 'config' | 'hooks' | 'scheduler'>;
  readonly lane: ReadLane;
  readonly clock: ServerClock;
  /** How far reads had come when the task was opened. */
  readonly begun: Pick<Cursor, 'firstRead' | 'since'>;
  /** Whether polls read what is new. */
  readonly isPolled: () => boolean;
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
  const { task, lane, clock, begun, isPolled } = options;
  const { firstRead, since: polledUntil } = begun;
  const { startFrom } = task.config.poll;
  const began$ = new ReplaySubject<number>(1);
  /** Whether an earlier process has begun the snapshot; without `Date` it could not tell when. */
  const isResumed = firstRead.startedAt !== null || firstRead.done || firstRead.position !== null;
  // A new process has seen nothing yet of the clock that stamps records.
  if (isResumed) began$.next((firstRead.startedAt ?? MAX_BACK_MS) - MAX_BACK_MS);
  const done$ = new ReplaySubject<void>(1);
  if (firstRead.done) done$.next();

  const isWhole = startFrom === undefined || !task.rules.windowed;
  let settled = true;
  let { startedAt, position } = firstRead;
  /** Whether polls have begun beside it. */
  let hasBegun = isResumed;
  /** Whether the list refuses the window from `START_FROM`, or shows nothing in it. */
  let isWindowUseless = false;
  const batch = (page: ScanPage): SnapshotBatch => {
    // A server may never tell its time: then nobody can say what was made after the beginning.
    startedAt ??= beginning(page.answer.serverTime, polledUntil);
    const done = page.next === undefined;
    position = page.next ?? null;
    hasBegun = true;
    const snapshot: InitialSnapshot = {
      startedAt,
      position,
      done,
      caughtUp: false,
    };
    // As with a sweep: what it may be nobody knows.
    settled &&= recordsOf(page.answer).isReadable;
    if (isStale(page.answer.age)) {
      settled = false;
      clock.reachBack(page.answer.age!.staleMs);
    }
    const brought = lane.seen(page.answer);
    // An empty list tells nothing of the clock that will stamp its first record.
    began$.next(clock.mark(clock.newest()) ?? (startedAt ?? MAX_BACK_MS) - MAX_BACK_MS);
    const settle = () => {
      brought.settle();
      if (done) done$.next();
    };
    return { lane: 'first-read', ...brought, settle, page, snapshot, isWhole, settled };
  };
  const onTrouble = (trouble: ScanTrouble) =>
    void (settled &&= trouble !== 'unsettled' && trouble !== 'cut');
  /**
   * Scans the window of the initial snapshot. Polls read the records modified after its end. The window begins early enough for servers that
   * read it in a time zone of their own; records older than `START_FROM` are left out by `updated_at`. A list that refuses such a window, or
   * shows nothing in it, is read whole: it may not read its end, in the future, or its beginning, long ago.
   */
  const scan = (): Observable<ScanPage> => {
    const from = position;
    if (startFrom === undefined || isWhole || isWindowUseless)
      return lane.scan({}, { from, onTrouble });
    const now = clock.latest(task.scheduler.now());
    const whole = () => {
      isWindowUseless = true;
      return lane.scan({}, { onTrouble });
    };
    return lane.scan(window(startFrom - MAX_ZONE_MS - DST_MS, now), { from, onTrouble }).pipe(
      orWhole(lane, whole),
      concatMap((page) => {
        if (isWindowUseless || !isEmptyList(page)) return of(page);
        return concat(of({ ...page, next: BEGINNING }), whole());
      }),
    );
  };
  const batches$ = task.account.tokens.token$.pipe(
    take(1),
    switchMap(({ serverTime }) => {
      if (firstRead.done) return EMPTY;
      clock.tell(serverTime, task.scheduler.now());
      ({ startedAt } = firstRead);
      return defer(scan).pipe(
        map(batch),
        refusedLane({
          task,
          goesAlone: () => hasBegun && isPolled(),
          onRefused: () => lane.permits.release(), // the request that failed had taken it
        }),
      );
    }),
  );
  return { batches$, began$, done$ };
}

/** Whether a scan shows nothing at all. */
function isEmptyList({ offset, next, answer }: ScanPage): boolean {
  return offset === 0 && next === undefined && recordsOf(answer).updatedAt().length === 0;
}

/**
 * What was made after it is new. An initial snapshot that begins anew, after earlier polls, takes nothing for new
 * that they can have brought: the clock that stamps records may be ahead.
 */
function beginning(serverTime: number | undefined, since: number | null): number | null {
  return serverTime === undefined ? null : Math.max(serverTime, since ?? -Infinity);
}
