import { catchError, map, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CellarstreamError, isOfOneResource } from '../../core/errors.ts';
import type { ResourceRules } from '../../resources/resources.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import type { Answer, ListRequest } from '../../streams/decode/answer.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import type { PageRecords } from '../../streams/records/page-records.ts';

/** Single records of a list, asked for by their keys. */
export interface SingleRecords {
  readonly canBeAsked: (key: string) => boolean;
  /**
   * What the API says of a key. Emits once: the answer, which is empty when there is no such record,
   * or undefined when it can't be told.
   */
  readonly ask: (key: string, limit: Limit) => Observable<Answer | undefined>;
  /** Told of what has just been read: one of it is asked for where an answer is in doubt. */
  readonly saw: (records: PageRecords) => void;
}

export interface SingleRecordsOptions {
  /** The parameter that a key is asked for with; undefined where there is none. */
  readonly byKey: ResourceRules['byKey'];
  readonly request: ListRequest;
  /** Told of answers that nobody will deal with. */
  readonly settle: (span: Span) => void;
  /** A key that the API refuses to be asked for, or of which it sends what is no JSON. */
  readonly onRefused: (error: unknown) => void;
}

/**
 * Asks for single records. An API may answer 404 for a number that it does not have, and so may a
 * gateway while the API behind it is replaced: such an answer counts only if a record that is known
 * to be there is found just after it. A key that the API refuses (400, say), or answers with what is no JSON, can't
 * be told of.
 */
export function singleRecords(options: SingleRecordsOptions): SingleRecords {
  const { byKey, request, settle, onRefused } = options;
  let witness: string | undefined;

  const canBeAsked = (key: string) => byKey !== undefined && /^\d+$/.test(key);
  const find = (key: string, limit: Limit) => request({ [byKey!]: key }, limit);
  const confirmed = (answer: Answer, key: string, limit: Limit): Observable<Answer | undefined> => {
    if (!recordsOf(answer).isReadable) {
      settle(answer.span);
      onRefused(
        new CellarstreamError('API_ANSWER', 'the API sent a single record that is not JSON'),
      );
      return of(undefined);
    }
    if (!answer.notFound) return of(answer);
    const found$ =
      witness === undefined || witness === key
        ? of(false)
        : find(witness, limit).pipe(
            map((found) => {
              settle(found.span);
              const { length, isReadable } = recordsOf(found);
              return length > 0 && isReadable;
            }),
            // Refused, it tells nothing of the key that it was asked for.
            catchError((error: unknown) =>
              isOfOneResource(error) ? of(false) : throwError(() => error),
            ),
          );
    return found$.pipe(
      map((isFound) => {
        if (!isFound) settle(answer.span);
        return isFound ? answer : undefined;
      }),
    );
  };
  return {
    canBeAsked,
    ask: (key, limit) =>
      find(key, limit).pipe(
        switchMap((answer) => confirmed(answer, key, limit)),
        catchError((error: unknown) => {
          if (!isOfOneResource(error)) return throwError(() => error);
          onRefused(error);
          return of(undefined);
        }),
      ),
    saw: (records) => {
      if (byKey === undefined) return;
      for (let place = records.length - 1; place >= 0; place -= 1) {
        const key = records.at(place)?.key;
        if (key === undefined || !canBeAsked(key)) continue;
        witness = key;
        return;
      }
    },
  };
}
