import { concatMap, filter, map, mergeMap, of, Subject, switchMap, tap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ReadLane, RefetchBatch } from './read-batch.ts';
import type { SingleRecords } from './single-records.ts';

/** Time of a refetch that is not needed if another read has decided the record by then. */
export interface ScheduledRefetch {
  /** Local time of the refetch, in ms on the scheduler's clock. */
  readonly at: number;
  /** Whether the refetch is still needed; called at that time. */
  readonly isWanted: () => boolean;
}

/** Maximum number of scheduled refetches, each of which costs a request. Further records are read again only by polls and sweeps. */
const MAX_SCHEDULED = 100;

/** Refetches records, one after another: those that overlapping reads left undecided, and those that need a confirming second read. */
export class Refetches {
  readonly batches$: Observable<RefetchBatch>;
  readonly #single: SingleRecords;
  readonly #scheduler: SchedulerLike;
  readonly #requests$ = new Subject<{ readonly key: string; readonly later?: ScheduledRefetch }>();
  /** Keys whose refetch is scheduled, queued or in flight. */
  readonly #pending = new Set<string>();
  /** Number of refetches whose time has not come yet. */
  #scheduled = 0;

  /** @param lane Must have a single page slot, so that a record is settled before the next one is requested. */
  constructor(single: SingleRecords, lane: ReadLane, scheduler: SchedulerLike) {
    this.#single = single;
    this.#scheduler = scheduler;
    this.batches$ = this.#requests$.pipe(
      mergeMap(({ key, later }) => (later ? this.#due(key, later) : of(key))),
      concatMap((key) =>
        lane.pageSlots.acquire.pipe(
          switchMap(() => single.request(key, lane.limit)),
          tap((answer) => {
            this.#pending.delete(key); // a later refetch of the key is allowed
            if (!answer) lane.pageSlots.release();
          }),
          filter((answer) => answer !== undefined),
          map((answer): RefetchBatch => ({ lane: 'reread', ...lane.splitAndTellClock(answer) })),
        ),
      ),
    );
  }

  /**
   * Requests a record by its key, at once or at the time in `later`. Ignored if a refetch of the key is pending, and if the record can't be
   * requested by key: a later poll or sweep decides it.
   */
  refetch(key: string, later?: ScheduledRefetch): void {
    if (this.#pending.has(key) || !this.#single.canRequest(key)) return;
    if (later && this.#scheduled >= MAX_SCHEDULED) return;
    this.#pending.add(key);
    this.#requests$.next({ key, ...(later && { later }) });
  }

  /** Emits the key at its time; completes without it if the refetch is not wanted any more. */
  #due(key: string, { at, isWanted }: ScheduledRefetch): Observable<string> {
    this.#scheduled += 1;
    return timer(Math.max(0, at - this.#scheduler.now()), this.#scheduler).pipe(
      tap(() => (this.#scheduled -= 1)),
      filter(() => {
        if (isWanted()) return true;
        this.#pending.delete(key);
        return false;
      }),
      map(() => key),
    );
  }
}
