import { concatMap, filter, map, Subject, switchMap, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Reading } from './reading.ts';
import type { SingleRecords } from './single-records.ts';
import type { Answer } from '../../streams/http/request.ts';
import type { Room } from '../../streams/quota/room.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';

export interface RereadsOptions {
  readonly single: SingleRecords;
  readonly limit: Limit;
  /** Of one place: a record is dealt with before the next is asked for. */
  readonly room: Room;
  readonly arrived: (answer: Answer) => Reading;
}

export interface Rereads {
  readonly readings$: Observable<Reading>;
  /** Reads a record again, by its key; one that is asked for already is not asked for twice. */
  readonly readAgain: (key: string) => void;
}

/** Records of which two answers could not be told apart, one after the other. */
export function rereads({ single, limit, room, arrived }: RereadsOptions): Rereads {
  const again$ = new Subject<string>();
  const asked = new Set<string>();
  const readings$ = again$.pipe(
    concatMap((key) =>
      room.enter.pipe(
        switchMap(() => single.ask(key, limit)),
        tap((answer) => {
          asked.delete(key); // it may come to that again
          if (!answer) room.leave();
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
