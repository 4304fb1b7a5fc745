import { concatMap, filter, map, mergeMap, of, Subject, switchMap, tap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Permits } from '../../streams/flow/permits.ts';
import type { Answer } from '../../streams/decode/answer.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import type { Brought, RefetchBatch } from './read-batch.ts';
import type { SingleRecords } from './single-records.ts';

export interface RefetchesOptions {
  readonly single: SingleRecords;
  readonly limit: Limit;
  /** Of one place: a record is dealt with before the next is asked for. */
  readonly permits: Permits;
  readonly arrived: (answer: Answer) => Brought;
  readonly scheduler: SchedulerLike;
}

export interface Refetches {
  readonly batches$: Observable<RefetchBatch>;
  /** Reads a record again, by its key; one that is asked for already is not asked for twice. */
  readonly refetch: (key: string, later?: LaterRefetch) => void;
}

/** When a record is read again, unless another answer has settled it by then. */
export interface LaterRefetch {
  /** Local time, ms. */
  readonly at: number;
  readonly isWanted: () => boolean;
}

/** Upper bound of scheduled refetches, each a request in the lane `lookBack`. Records beyond it are read again by sweeps. */
const MAX_LATER = 100;

/** Records of which two answers could not be told apart, or whose answer has to be confirmed, one after the other. */
export function refetches(options: RefetchesOptions): Refetches {
  const { single, limit, permits, arrived, scheduler } = options;
  const again$ = new Subject<{ readonly key: string; readonly later: LaterRefetch | undefined }>();
  const asked = new Set<string>();
  let waiting = 0;
  const due = (key: string, { at, isWanted }: LaterRefetch): Observable<string> => {
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
      permits.acquire.pipe(
        switchMap(() => single.ask(key, limit)),
        tap((answer) => {
          asked.delete(key); // it may come to that again
          if (!answer) permits.release();
        }),
        filter((answer) => answer !== undefined),
        map((answer): RefetchBatch => ({ lane: 'reread', ...arrived(answer) })),
      ),
    ),
  );
  return {
    batches$,
    refetch: (key, later) => {
      // What can't be asked for a later poll or sweep decides.
      if (asked.has(key) || !single.canBeAsked(key)) return;
      if (later && waiting >= MAX_LATER) return;
      asked.add(key);
      again$.next({ key, later });
    },
  };
}
