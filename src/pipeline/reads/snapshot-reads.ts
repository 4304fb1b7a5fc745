import { concat, concatMap, defer, EMPTY, map, of, ReplaySubject, switchMap, take } from 'rxjs';
import type { Observable } from 'rxjs';
import { isStale } from '../../streams/http/response-age.ts';
import { DST_MS, MAX_BACK_MS, MAX_ZONE_MS } from '../../streams/http/server-clock.ts';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { BEGINNING } from '../../streams/paging/anchors.ts';
import { INCONSISTENT } from '../../streams/paging/scan-trouble.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import type { ScanTrouble } from '../../streams/paging/scan-trouble.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import { window } from '../../streams/paging/poll.ts';
import type { Cursor, InitialSnapshot } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import { orFullScan } from './dated-scan.ts';
import type { ReadLane, SnapshotBatch } from './read-batch.ts';
import { retryRefusedLane } from './retry-refused-lane.ts';

export interface SnapshotReadsOptions {
  readonly task: Pick<Task, 'account' | 'list' | 'config' | 'hooks' | 'scheduler'>;
  readonly lane: ReadLane;
  readonly clock: ServerClock;
  /** Progress of the initial snapshot and of the polls at the time the task was opened. */
  readonly progress: Pick<Cursor, 'firstRead' | 'since'>;
  /** Whether the list is polled for new changes at present. */
  readonly isPolled: () => boolean;
}

/**
 * Reads the list for the initial snapshot, from the stored position to the end. If `START_FROM` is set and the list has dates, reads only
 * records modified since about then, or all records if such requests fail or return none.
 */
export class SnapshotReads {
  /** Pages of the snapshot; none if it was complete when the task was opened. */
  readonly batches$: Observable<SnapshotBatch>;
  readonly #options: SnapshotReadsOptions;
  readonly #pollStart$ = new ReplaySubject<number>(1);
  readonly #done$ = new ReplaySubject<void>(1);
  /**
   * Start of the first poll window before the lookback is subtracted, in epoch ms. The window includes every change made during the
   * snapshot. Emits with each page of the snapshot, and repeats the last value on subscription.
   */
  readonly pollStart$: Observable<number> = this.#pollStart$;
  /** Emits when the last page of the snapshot has been committed; at once if the snapshot was complete when the task was opened. */
  readonly done$: Observable<void> = this.#done$;
  /**
   * Whether the snapshot scans the whole list from the outset, because `START_FROM` is not set or the list has no dates. Remains false if
   * the whole list is scanned only because requests with dates were useless.
   */
  readonly #isFullScan: boolean;
  #startedAt: InitialSnapshot['startedAt'];
  #position: InitialSnapshot['position'];
  #isConsistent = true;
  /** Whether this or an earlier process has read a page of the snapshot, so that polls run alongside it. */
  #hasBegun: boolean;
  /** Whether requests for the window from `START_FROM` on were refused, kept failing or returned no records. */
  #isWindowUseless = false;

  constructor(options: SnapshotReadsOptions) {
    this.#options = options;
    const { task, lane, clock, progress, isPolled } = options;
    const { done, startedAt, position } = progress.firstRead;
    this.#isFullScan = task.config.poll.startFrom === undefined || !task.list.dates;
    this.#startedAt = startedAt;
    this.#position = position;
    // `startedAt` alone does not show that an earlier process began the snapshot: it stays null if the server sends no `Date`.
    this.#hasBegun = startedAt !== null || done || position !== null;
    // This process has not read a record yet, so the window begins as early as any clock of the server could require.
    if (this.#hasBegun) this.#pollStart$.next((startedAt ?? MAX_BACK_MS) - MAX_BACK_MS);
    if (done) this.#done$.next();
    this.batches$ = task.account.tokens.token$.pipe(
      take(1),
      switchMap(({ serverTime }) => {
        if (done) return EMPTY;
        clock.tell(serverTime, task.scheduler.now());
        return defer(() => this.#scan()).pipe(
          map((page) => this.#batch(page)),
          retryRefusedLane(task, () => this.#hasBegun && isPolled(), lane),
        );
      }),
    );
  }

  /**
   * Scans the list for the initial snapshot. With `START_FROM`, in a list with dates, requests only records modified since about then. If
   * such requests are refused, keep failing or return no records, scans the whole list after all.
   */
  #scan(): Observable<ScanPage> {
    const { task, lane, clock } = this.#options;
    const { startFrom } = task.config.poll;
    const from = this.#position;
    const onTrouble = (trouble: ScanTrouble) =>
      void (this.#isConsistent &&= !INCONSISTENT.has(trouble));
    if (startFrom === undefined || this.#isFullScan || this.#isWindowUseless)
      return lane.scan({}, { from, onTrouble });
    const now = clock.latest(task.scheduler.now());
    const fullScan = () => {
      this.#isWindowUseless = true;
      return lane.scan({}, { onTrouble });
    };
    // The server may read dates in any time zone, so the window begins earlier than `START_FROM` and ends two days in the future. Older
    // records are filtered out later. Some servers do not support windows that end in the future or begin long ago: hence `orFullScan`.
    const { times } = task.config.description;
    const recent = window(startFrom - MAX_ZONE_MS - DST_MS, now, times);
    return lane.scan(recent, { from, onTrouble }).pipe(
      orFullScan(lane, fullScan),
      concatMap((page) => {
        if (this.#isWindowUseless || !isEmptyList(page)) return of(page);
        return concat(of({ ...page, next: BEGINNING }), fullScan());
      }),
    );
  }

  #batch(page: ScanPage): SnapshotBatch {
    const { lane, clock, progress } = this.#options;
    const { answer } = page;
    // Undefined while the server sends no `Date`: then no record counts as created after the beginning.
    this.#startedAt ??= createdSinceTime(answer.serverTime, progress.since);
    this.#position = page.next ?? null;
    this.#hasBegun = true;
    const done = page.next === undefined;
    const { publishedUpTo } = progress.firstRead;
    const [startedAt, position] = [this.#startedAt, this.#position];
    const snapshot = { publishedUpTo, startedAt, position, done, caughtUp: false };
    // A record without a readable key may be any record, so nothing is proven absent.
    this.#isConsistent &&= recordsOf(answer).isReadable && !isStale(answer.age);
    if (isStale(answer.age)) clock.reachBack(answer.age!.staleMs);
    const result = lane.splitAndTellClock(answer);
    // An empty list has no stamp to compare the server's clocks with, so the window begins as early as any clock could require.
    this.#pollStart$.next(clock.mark(clock.newest()) ?? (startedAt ?? MAX_BACK_MS) - MAX_BACK_MS);
    const settle = () => {
      result.settle();
      if (done) this.#done$.next();
    };
    const [isFullScan, isConsistent] = [this.#isFullScan, this.#isConsistent];
    return { lane: 'first-read', ...result, settle, page, snapshot, isFullScan, isConsistent };
  }
}

/** Whether the page is the only one of its scan, and has no records. */
function isEmptyList({ offset, next, answer }: ScanPage): boolean {
  return offset === 0 && next === undefined && recordsOf(answer).updatedAt().length === 0;
}

/**
 * Returns the time, in epoch ms, from which on a created record counts as new (event `c` instead of `r`): the later one of `serverTime` and
 * `since`. Null if the server sends no time.
 */
function createdSinceTime(serverTime: number | undefined, since: number | null): number | null {
  // Records created before `since`, where polls resume, may have been published after an earlier snapshot.
  return serverTime === undefined ? null : Math.max(serverTime, since ?? -Infinity);
}
