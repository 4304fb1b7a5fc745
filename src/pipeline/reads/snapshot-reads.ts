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
  /** Progress of the snapshot and of the polls at the time the task was opened. */
  readonly begun: Pick<Cursor, 'firstRead' | 'since'>;
  /** Whether polls read what is new. */
  readonly isPolled: () => boolean;
}

export interface SnapshotReads {
  /** Pages of the snapshot; none if it was complete when the task was opened. */
  readonly batches$: Observable<SnapshotBatch>;
  /** Start of the first poll window, in epoch ms: earlier than the stamp of any change made during the snapshot. Emits once it is known. */
  readonly began$: Observable<number>;
  /** Emits when the last page is settled; at once if the snapshot was complete when the task was opened. */
  readonly done$: Observable<void>;
}

/** Reads the list for the initial snapshot, from its stored position to the end. */
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
    // Undefined while the server sends no `Date`: then no record counts as created after the beginning.
    startedAt ??= beginning(page.answer.serverTime, polledUntil);
    const done = page.next === undefined;
    position = page.next ?? null;
    hasBegun = true;
    const { publishedUpTo } = firstRead;
    const snapshot: InitialSnapshot = {
      publishedUpTo,
      startedAt,
      position,
      done,
      caughtUp: false,
    };
    // A record without a readable key may be any record, so nothing is proven absent.
    settled &&= recordsOf(page.answer).isReadable;
    if (isStale(page.answer.age)) {
      settled = false;
      clock.reachBack(page.answer.age!.staleMs);
    }
    const brought = lane.seen(page.answer);
    // An empty list has no stamp to compare the clocks by: the window begins as early as any clock could need.
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
 * Time from which on created records are reported as new, in epoch ms; null if unknown. A snapshot that starts over after earlier polls
 * takes the end of those polls: a record they may have published is not new, even if the clock that stamps records runs ahead.
 */
function beginning(serverTime: number | undefined, since: number | null): number | null {
  return serverTime === undefined ? null : Math.max(serverTime, since ?? -Infinity);
}
