import { concat, last, map, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Answer } from './answer.ts';
import { isBroken } from './broken-answer.ts';
import type { BrokenAnswer, Inquiry } from './broken-answer.ts';
import { UnreadableRecord } from './unreadable-record.ts';
import type { UnreadableTexts } from './unreadable-texts.ts';

/** Broken records one after the other, at most: more of them are no fault of the records. */
const MOST_IN_A_ROW = 10;

/**
 * A page that goes on behind a record with which every answer ends (a server that fails in the middle of one). No
 * answer holds what is before the record and what is behind it. So the record is asked for first, then what is behind it,
 * then what is before it, then the record again: the parts are one page only if it was at its place
 * both times, with the same text. What moves out of the list and back between these requests goes unseen.
 */
export function acrossBroken(
  { offset, pageSize, ask, whole, failed }: Inquiry,
  place: number,
  one: BrokenAnswer,
  texts: UnreadableTexts,
): Observable<Answer> {
  const at = offset + place;
  const row = [one];

  const behind = (from: number): Observable<Answer> => {
    const left = Math.max(1, offset + pageSize - from);
    return ask({ offset: from, pageSize: left }).pipe(
      switchMap((answer) => {
        if (!isBroken(answer)) return of(answer);
        if (answer.broken.place > 0) return whole({ offset: from, pageSize: answer.broken.place });
        return ask({ offset: from, pageSize: 1 }).pipe(
          switchMap((next) => {
            if (!isBroken(next)) return of(next);
            if (row.push(next) > MOST_IN_A_ROW) return throwError(() => failed());
            return behind(from + 1);
          }),
        );
      }),
    );
  };
  const before$: Observable<Pick<Answer, 'data'>> =
    place > 0 ? whole({ offset, pageSize: place }) : of({ data: [] });
  /** Errors when one is not where it was; emits the end of each reading. */
  const again = () =>
    concat(
      ...row.map(({ broken }, nth) =>
        ask({ offset: at + nth, pageSize: 1 }).pipe(
          map((answer) => {
            if (isBroken(answer) && answer.broken.rest.equals(broken.rest)) return answer.span.end;
            throw failed();
          }),
        ),
      ),
    );
  return behind(at + 1).pipe(
    switchMap((next) =>
      before$.pipe(
        switchMap(({ data }) => {
          if (data.length !== place) return throwError(() => failed());
          return again().pipe(
            last(),
            map((end): Answer => {
              const lost = row.map(({ broken }, nth) => {
                texts.add(broken.rest);
                return new UnreadableRecord(broken.rest.toString('utf8'), at + nth);
              });
              const { span, serverTime, elapsedMs = 0 } = one;
              return {
                span: { begin: span.begin, end },
                serverTime,
                elapsedMs,
                data: [...data, ...lost, ...next.data],
                pagination: next.pagination,
              };
            }),
          );
        }),
      ),
    ),
  );
}
