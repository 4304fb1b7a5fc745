import { concatMap, filter, map, mergeMap, of, Subject, switchMap, tap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PageSlots } from '../../streams/flow/page-slots.ts';
import type { Answer } from '../../streams/decode/response.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import type { ReadResult, RefetchBatch } from './read-batch.ts';
import type { SingleRecords } from './single-records.ts';

export interface RefetchesOptions {
  readonly single: SingleRecords;
  readonly limit: Limit;
  /** Page slots of the lane of refetches: must be a single one, so that a record is settled before the next one is requested. */
  readonly pageSlots: PageSlots;
  readonly split: (answer: Answer) => ReadResult;
  readonly scheduler: SchedulerLike;
}

export interface Refetches {
  readonly batches$: Observable<RefetchBatch>;
  /** Requests a record by its key, at once or at the time in `later`. Ignored if a refetch of the key is pending. */
  readonly refetch: (key: string, later?: ScheduledRefetch) => void;
}

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
export function refetches(options: RefetchesOptions): Refetches {
  const { single, limit, pageSlots, split, scheduler } = options;
  const again$ = new Subject<{
    readonly key: string;
    readonly later: ScheduledRefetch | undefined;
  }>();
  const asked = new Set<string>();
  let waiting = 0;
  const due = (key: string, { at, isWanted }: ScheduledRefetch): Observable<string> => {
    waiting += 1;
    return timer(Math.max(0, at - scheduler.now()), scheduler).pipe(
      tap(() => (waiting -= 1)),
      filter(() => {
        if (isWanted()) return true;
        asked.delete(key);
        return false;
      }),
      map(() => key),
    );
  };
  const batches$ = again$.pipe(
    mergeMap(({ key, later }) => (later ? due(key, later) : of(key))),
    concatMap((key) =>
      pageSlots.acquire.pipe(
        switchMap(() => single.request(key, limit)),
        tap((answer) => {
          asked.delete(key); // a later refetch of the key is allowed
          if (!answer) pageSlots.release();
        }),
        filter((answer) => answer !== undefined),
        map((answer): RefetchBatch => ({ lane: 'reread', ...split(answer) })),
      ),
    ),
  );
  return {
    batches$,
    refetch: (key, later) => {
      // A record that can't be requested by key is decided by a later poll or sweep.
      if (asked.has(key) || !single.canRequest(key)) return;
      if (later && waiting >= MAX_SCHEDULED) return;
      asked.add(key);
      again$.next({ key, later });
    },
  };
}
