import { concat, concatMap, defer, EMPTY, map, of, ReplaySubject, switchMap, take } from 'rxjs';
import type { Observable } from 'rxjs';
import { isStale } from '../../streams/http/response-age.ts';
import { DST_MS, MAX_BACK_MS, MAX_ZONE_MS } from '../../streams/http/server-clock.ts';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { BEGINNING } from '../../streams/paging/anchors.ts';
import type { ScanPage, ScanTrouble } from '../../streams/paging/pages.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import { window } from '../../streams/paging/poll.ts';
import type { Cursor, InitialSnapshot } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import { orFullScan } from './dated-scan.ts';
import type { ReadLane, SnapshotBatch } from './read-batch.ts';
import { retryRefusedLane } from './retry-refused-lane.ts';

export interface SnapshotReadsOptions {
  readonly task: Pick<Task, 'account' | 'rules' | 'config' | 'hooks' | 'scheduler'>;
  readonly lane: ReadLane;
  readonly clock: ServerClock;
  /** Progress of the snapshot and of the polls at the time the task was opened. */
  readonly progress: Pick<Cursor, 'firstRead' | 'since'>;
  /** Whether polls read new changes. */
  readonly isPolled: () => boolean;
}

export interface SnapshotReads {
  /** Pages of the snapshot; none if it was complete when the task was opened. */
  readonly batches$: Observable<SnapshotBatch>;
  /** Start of the first poll window, in epoch ms: earlier than the stamp of any change made during the snapshot. Emits once it is known. */
  readonly pollStart$: Observable<number>;
  /**
   * Emits when the last page of the snapshot is settled (committed or dropped); at once if the snapshot was complete when the task was
   * opened.
   */
  readonly done$: Observable<void>;
}

/** Reads the list for the initial snapshot, from its stored position to the end. */
export function snapshotReads(options: SnapshotReadsOptions): SnapshotReads {
  const { task, lane, clock, progress, isPolled } = options;
  const { firstRead: initialSnapshot, since: polledUntil } = progress;
  const { startFrom } = task.config.poll;
  const pollStart$ = new ReplaySubject<number>(1);
  /** Whether an earlier process began the snapshot. `startedAt` alone does not show it: it stays null if the server sends no `Date`. */
  const isResumed =
    initialSnapshot.startedAt !== null || initialSnapshot.done || initialSnapshot.position !== null;
  // This process has not read a record yet, so the window begins as early as any clock of the server could require.
  if (isResumed) pollStart$.next((initialSnapshot.startedAt ?? MAX_BACK_MS) - MAX_BACK_MS);
  const done$ = new ReplaySubject<void>(1);
  if (initialSnapshot.done) done$.next();

  const isFullScan = startFrom === undefined || !task.rules.windowed;
  let isConsistent = true;
  let { startedAt, position } = initialSnapshot;
  /** Whether polls have begun to run alongside the snapshot. */
  let hasBegun = isResumed;
  /** Whether the list refuses the window from `START_FROM` on, or returned no records for it. */
  let isWindowUseless = false;
  const batch = (page: ScanPage): SnapshotBatch => {
    // Undefined while the server sends no `Date`: then no record counts as created after the beginning.
    startedAt ??= createdSinceTime(page.answer.serverTime, polledUntil);
    const done = page.next === undefined;
    position = page.next ?? null;
    hasBegun = true;
    const { publishedUpTo } = initialSnapshot;
    const snapshot: InitialSnapshot = {
      publishedUpTo,
      startedAt,
      position,
      done,
      caughtUp: false,
    };
    // A record without a readable key may be any record, so nothing is proven absent.
    isConsistent &&= recordsOf(page.answer).isReadable;
    if (isStale(page.answer.age)) {
      isConsistent = false;
      clock.reachBack(page.answer.age!.staleMs);
    }
    const result = lane.splitAndTellClock(page.answer);
    // An empty list has no stamp to compare the server's clocks with, so the window begins as early as any clock could require.
    pollStart$.next(clock.mark(clock.newest()) ?? (startedAt ?? MAX_BACK_MS) - MAX_BACK_MS);
    const settle = () => {
      result.settle();
      if (done) done$.next();
    };
    return {
      lane: 'first-read',
      ...result,
      settle,
      page,
      snapshot,
      isFullScan,
      isConsistent,
    };
  };
  const onTrouble = (trouble: ScanTrouble) =>
    void (isConsistent &&= trouble !== 'unsettled' && trouble !== 'cut');
  /**
   * Scans the window of the initial snapshot; polls read the records modified after its end. The window begins early enough for servers
   * that interpret it in a time zone of their own; records older than `START_FROM` are filtered by `updated_at` later. If the list refuses
   * the window, or returns no records for it, the whole list is scanned: servers may not support an end in the future, or a start long ago.
   */
  const scan = (): Observable<ScanPage> => {
    const from = position;
    if (startFrom === undefined || isFullScan || isWindowUseless)
      return lane.scan({}, { from, onTrouble });
    const now = clock.latest(task.scheduler.now());
    const fullScan = () => {
      isWindowUseless = true;
      return lane.scan({}, { onTrouble });
    };
    return lane.scan(window(startFrom - MAX_ZONE_MS - DST_MS, now), { from, onTrouble }).pipe(
      orFullScan(lane, fullScan),
      concatMap((page) => {
        if (isWindowUseless || !isEmptyList(page)) return of(page);
        return concat(of({ ...page, next: BEGINNING }), fullScan());
      }),
    );
  };
  const batches$ = task.account.tokens.token$.pipe(
    take(1),
    switchMap(({ serverTime }) => {
      if (initialSnapshot.done) return EMPTY;
      clock.tell(serverTime, task.scheduler.now());
      ({ startedAt } = initialSnapshot);
      return defer(scan).pipe(
        map(batch),
        retryRefusedLane({
          task,
          hasOtherLanes: () => hasBegun && isPolled(),
          onRefused: () => lane.pageSlots.release(), // acquired for the refused request
        }),
      );
    }),
  );
  return { batches$, pollStart$, done$ };
}

/** Whether the page is the only one of its scan, and has no records. */
function isEmptyList({ offset, next, answer }: ScanPage): boolean {
  return offset === 0 && next === undefined && recordsOf(answer).updatedAt().length === 0;
}

/**
 * Returns the time, in epoch ms, from which on a record must have been created to be reported as new; null if unknown. A snapshot that
 * starts over after earlier polls takes the end of those polls: a record they may have published is not new, even if the clock that stamps
 * records runs ahead.
 */
function createdSinceTime(serverTime: number | undefined, since: number | null): number | null {
  return serverTime === undefined ? null : Math.max(serverTime, since ?? -Infinity);
}
