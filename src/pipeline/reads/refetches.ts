import { concatMap, filter, map, mergeMap, of, Subject, switchMap, tap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ReadLane, RefetchBatch } from './read-batch.ts';
import type { SingleRecords } from './single-records.ts';

/** A refetch (request for a single record) that is scheduled for later. It is omitted if it is not needed any more when it is due. */
export interface ScheduledRefetch {
  /** When the refetch is due, in ms on the scheduler's clock. */
  readonly at: number;
  /** Whether the refetch (request for a single record) is still needed. Called when it is due. */
  readonly isWanted: () => boolean;
}

/**
 * Maximum number of refetches (requests for single records) scheduled for later. If it is too small, more records wait for the next poll or
 * sweep. If it is too large, refetches use up much of the quota.
 */
const MAX_SCHEDULED = 100;

/** Requests records again, one by one: those that overlapping reads showed differently, and those that a second read must confirm. */
export class Refetches {
  readonly batches$: Observable<RefetchBatch>;
  readonly #single: SingleRecords;
  readonly #scheduler: SchedulerLike;
  readonly #requests$ = new Subject<{ readonly key: string; readonly later?: ScheduledRefetch }>();
  /** Keys whose refetch (request for the single record) is scheduled, queued or in flight. */
  readonly #pending = new Set<string>();
  /** Number of refetches (requests for single records) that are scheduled for later. */
  #scheduled = 0;

  /** @param lane Must have exactly one page slot: a record is requested only after the previous one has been committed or dropped. */
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
   * Requests a record by its key, at once or at the time in `later`. Does nothing if the record can't be requested by key, or if a request
   * for it is pending. With `later`, also does nothing if too many refetches are scheduled.
   */
  refetch(key: string, later?: ScheduledRefetch): void {
    // A record whose refetch is not possible is read by a later poll or sweep.
    if (this.#pending.has(key) || !this.#single.canRequest(key)) return;
    if (later && this.#scheduled >= MAX_SCHEDULED) return;
    this.#pending.add(key);
    this.#requests$.next({ key, ...(later && { later }) });
  }

  /** Emits `key` when the scheduled request for its record is due. Completes without emitting if the request is not needed any more. */
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
