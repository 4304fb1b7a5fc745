import { concatMap, filter, map, Subject, switchMap, tap } from 'rxjs';
import type { Observable } from 'rxjs';
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
}

export interface Refetches {
  readonly batches$: Observable<RefetchBatch>;
  /** Reads a record again, by its key; one that is asked for already is not asked for twice. */
  readonly refetch: (key: string) => void;
}

/** Records of which two answers could not be told apart, one after the other. */
export function refetches({ single, limit, permits, arrived }: RefetchesOptions): Refetches {
  const again$ = new Subject<string>();
  const asked = new Set<string>();
  const batches$ = again$.pipe(
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
    refetch: (key) => {
      // What can't be asked for a later poll or sweep decides.
      if (asked.has(key) || !single.canBeAsked(key)) return;
      asked.add(key);
      again$.next(key);
    },
  };
}
