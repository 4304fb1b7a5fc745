import { concat, last, map, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { oldestOf } from '../http/answer-age.ts';
import type { Answer } from './answer.ts';
import { isBroken, unreadIn } from './broken-answer.ts';
import type { BrokenAnswer, Inquiry } from './broken-answer.ts';
import { PageRecord } from '../records/page-record.ts';
import type { UnreadableTexts } from './unreadable-texts.ts';

/** Broken records one after the other, at most: more of them are no fault of the records. */
const MAX_IN_A_ROW = 10;

/** So much of a text tells which record it is; the rest of it may be another in each answer. */
const MAX_COMPARED = 64;

/**
 * A page around a record that no answer shows together with what is behind it: the server fails in the middle of it
 * and ends its answer, or its text differs in every answer. So the record is asked for first, then what
 * is behind it, then what is before it, then the record again: the parts are one page only if it was at its place both
 * times, no JSON and with the same beginning. What moves out of the list and back between these requests goes
 * unseen.
 */
export function acrossBroken(
  { offset, pageSize, ask, whole, failed }: Inquiry,
  place: number,
  one: Answer | BrokenAnswer,
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
            if (row.push(next) > MAX_IN_A_ROW) return throwError(() => failed());
            return behind(from + 1);
          }),
        );
      }),
    );
  };
  const before$: Observable<Pick<Answer, 'data' | 'age'>> =
    place > 0 ? whole({ offset, pageSize: place }) : of({ data: [] });
  /** Errors when one is not where it was; emits the end of each reading. */
  const again = () =>
    concat(
      ...row.map((each, nth) =>
        ask({ offset: at + nth, pageSize: 1 }).pipe(
          map((answer) => {
            if (beginning(answer) !== beginning(each)) throw failed();
            return answer.span.end;
          }),
        ),
      ),
    );
  return behind(at + 1).pipe(
    switchMap((next) =>
      before$.pipe(
        switchMap(({ data, age }) => {
          if (data.length !== place) return throwError(() => failed());
          return again().pipe(
            last(),
            map((end): Answer => {
              const lost = row.map((each, nth) => {
                if (isBroken(each)) texts.add(each.broken.rest);
                return PageRecord.unreadable(unreadIn(each)!, at + nth);
              });
              const { span, serverTime, elapsedMs = 0 } = one;
              return {
                span: { begin: span.begin, end },
                serverTime,
                elapsedMs,
                age: oldestOf([age, one.age, next.age]),
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

const beginning = (answer: Answer | BrokenAnswer) => unreadIn(answer)?.slice(0, MAX_COMPARED);
