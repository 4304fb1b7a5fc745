import { concatMap, filter, map, Subject, switchMap, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { ReadBatch } from './read-batch.ts';
import type { SingleRecords } from './single-records.ts';
import type { Answer } from '../../streams/http/request.ts';
import type { Permits } from '../../streams/flow/permits.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';

export interface RefetchesOptions {
  readonly single: SingleRecords;
  readonly limit: Limit;
  /** Of one place: a record is dealt with before the next is asked for. */
  readonly permits: Permits;
  readonly arrived: (answer: Answer) => ReadBatch;
}

export interface Refetches {
  readonly readings$: Observable<ReadBatch>;
  /** Reads a record again, by its key; one that is asked for already is not asked for twice. */
  readonly readAgain: (key: string) => void;
}

/** Records of which two answers could not be told apart, one after the other. */
export function refetches({ single, limit, permits, arrived }: RefetchesOptions): Refetches {
  const again$ = new Subject<string>();
  const asked = new Set<string>();
  const readings$ = again$.pipe(
    concatMap((key) =>
      permits.acquire.pipe(
        switchMap(() => single.ask(key, limit)),
        tap((answer) => {
          asked.delete(key); // it may come to that again
          if (!answer) permits.release();
        }),
        filter((answer) => answer !== undefined),
        map(arrived),
      ),
    ),
  );
  return {
    readings$,
    readAgain: (key) => {
      // What can't be asked for a later poll or sweep decides.
      if (asked.has(key) || !single.canBeAsked(key)) return;
      asked.add(key);
      again$.next(key);
    },
  };
}
