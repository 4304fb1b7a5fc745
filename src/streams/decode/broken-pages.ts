// Pages with a record that is no JSON and keeps the rest of its page from being read: what can be had instead.

import { concat, defer, finalize, last, map, of, switchMap, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { textOfAnyBytes } from '../../schemas/json/json-text.ts';
import { oldestOf } from '../http/answer-age.ts';
import { where } from '../http/http.ts';
import type { LogicalClock } from '../http/logical-clock.ts';
import type { PagePlace } from '../http/page-plan.ts';
import type { ListQuery } from '../http/page-request.ts';
import { PageRecord } from '../records/page-record.ts';
import { recordsOf } from './answer.ts';
import type { Answer } from './answer.ts';
import type { UnreadableTexts } from './decoded-page.ts';

/** A page with a record that is no JSON, of which nobody can say where it ends. */
export interface BrokenPage {
  readonly broken: {
    /** Of the record in the page: those before it are right. */
    readonly place: number;
    /** From its first byte to the end of the page. */
    readonly rest: Buffer;
  };
}

/** An answer that is such a page. */
export type BrokenAnswer = Omit<Answer, 'data' | 'records' | 'pagination' | 'notFound'> &
  BrokenPage;

export const isBroken = (answer: Answer | BrokenAnswer): answer is BrokenAnswer =>
  'broken' in answer;

interface BrokenPagesOptions {
  readonly url: URL;
  /** Asks for something else: what is no JSON is taken for what the API has to say. */
  readonly ask: (query: ListQuery) => Observable<Answer | BrokenAnswer>;
  readonly texts: UnreadableTexts;
  /** Settles the reads of answers that nobody will deal with. */
  readonly clock: LogicalClock;
}

/** Records of a page that are asked for alone, at most, before what stands in front of them is given. */
const MAX_ALONE = 20;
/** Broken records one after the other, at most: more of them are no fault of the records. */
const MAX_IN_A_ROW = 10;
/** So much of a text tells which record it is; the rest of it may be another in each answer. */
const MAX_COMPARED = 64;

/**
 * What can be had instead of a broken page. Its record is asked for alone: mostly its text shows then, and the page is read around it,
 * whole. If it can be read alone, the page was too much for somebody: half of what stands in front of it is given, as a smaller page. If
 * none of it helps, the records behind it are read apart: see `across`.
 *
 * A single record that was asked for by its number comes as it is. Errors with `API_ANSWER` when nothing leads on.
 */
export function brokenPages(
  options: BrokenPagesOptions,
): (query: ListQuery, page: BrokenAnswer) => Observable<Answer> {
  const { url, texts, clock } = options;

  return (query, page) =>
    defer(() => {
      const { offset = 0, pageSize = 0, orderNumber } = query;
      const unsettled = new Set([page.span.begin]);
      const ask = (part: PagePlace) =>
        options.ask({ ...query, ...part }).pipe(tap(({ span }) => unsettled.add(span.begin)));
      const error = () => {
        const message = `${where(url)} sent a record that is not JSON, and the records around it can't be read either`;
        return new CellarstreamError('API_ANSWER', message, { context: { offset } });
      };
      const failed = () => throwError(error);
      /** A part that must not be broken. */
      const whole = (part: PagePlace) =>
        ask(part).pipe(
          map((answer) => {
            if (isBroken(answer)) throw error();
            return answer;
          }),
        );

      const around = (place: number, alone: number): Observable<Answer> => {
        /** Half of what was right: all of it might be too much as well. */
        const inFront = () =>
          place > 0 ? whole({ offset, pageSize: Math.ceil(place / 2) }) : failed();
        return ask({ offset: offset + place, pageSize: 1 }).pipe(
          switchMap((one) => {
            if (isBroken(one)) return across(place, one);
            if (unreadIn(one) === undefined || alone === MAX_ALONE) return inFront();
            return ask({ offset, pageSize }).pipe(
              switchMap((again) => {
                if (!isBroken(again)) return of(again);
                const next = again.broken.place;
                // Its text is another one in each answer, or pages are smaller than they should be.
                return next > place ? around(next, alone + 1) : across(place, one);
              }),
            );
          }),
        );
      };

      /**
       * The page around a record that no answer shows together with what is behind it: the server fails in the middle of it and ends its
       * answer, or its text differs in every answer. So the record is asked for first (`one`), then what is behind it, then what is before
       * it, then the record again: the parts are one page only if it was at its place both times, no JSON and with the same beginning. What
       * moves out of the list and back between these requests goes unseen.
       */
      const across = (place: number, one: Answer | BrokenAnswer): Observable<Answer> => {
        const at = offset + place;
        const row = [one];
        const behind = (from: number): Observable<Answer> =>
          ask({ offset: from, pageSize: Math.max(1, offset + pageSize - from) }).pipe(
            switchMap((answer) => {
              if (!isBroken(answer)) return of(answer);
              const { place: good } = answer.broken;
              if (good > 0) return whole({ offset: from, pageSize: good });
              return ask({ offset: from, pageSize: 1 }).pipe(
                switchMap((next) => {
                  if (!isBroken(next)) return of(next);
                  return row.push(next) > MAX_IN_A_ROW ? failed() : behind(from + 1);
                }),
              );
            }),
          );
        const before$: Observable<Pick<Answer, 'data' | 'age'>> =
          place > 0 ? whole({ offset, pageSize: place }) : of({ data: [] });
        /** Errors when one is not where it was; emits the end of each reading. */
        const again = () =>
          concat(
            ...row.map((each, nth) =>
              ask({ offset: at + nth, pageSize: 1 }).pipe(
                map((answer) => {
                  if (beginning(answer) !== beginning(each)) throw error();
                  return answer.span.end;
                }),
              ),
            ),
          );
        const joined = (
          before: Pick<Answer, 'data' | 'age'>,
          next: Answer,
          end: number,
        ): Answer => {
          const lost = row.map((each, nth) => {
            if (isBroken(each)) texts.add(each.broken.rest);
            return PageRecord.unreadable(unreadIn(each)!, at + nth);
          });
          const { span, serverTime, elapsedMs = 0 } = one;
          return {
            span: { begin: span.begin, end },
            serverTime,
            elapsedMs,
            age: oldestOf([before.age, one.age, next.age]),
            data: [...before.data, ...lost, ...next.data],
            pagination: next.pagination,
          };
        };
        return behind(at + 1).pipe(
          switchMap((next) =>
            before$.pipe(
              switchMap((before) => {
                if (before.data.length !== place) return failed();
                return again().pipe(
                  last(),
                  map((end) => joined(before, next, end)),
                );
              }),
            ),
          ),
        );
      };

      const found = (): Observable<Answer> => {
        if (orderNumber !== undefined) return of(asItIs(page));
        return query.pageSize === undefined ? failed() : around(page.broken.place, 1);
      };
      return found().pipe(
        tap(({ span }) => unsettled.delete(span.begin)),
        finalize(() => unsettled.forEach((begin) => clock.settle(begin))),
      );
    });
}

/** The text of the record that is no JSON with which an answer begins; undefined where it is JSON. */
function unreadIn(answer: Answer | BrokenAnswer): string | undefined {
  if (isBroken(answer)) return textOfAnyBytes(answer.broken.rest);
  const first = recordsOf(answer).at(0);
  return first?.unreadableAt === undefined ? undefined : (first.json as string);
}

const beginning = (answer: Answer | BrokenAnswer) => unreadIn(answer)?.slice(0, MAX_COMPARED);

function asItIs({ broken, ...answer }: BrokenAnswer): Answer {
  const record = PageRecord.unreadable(textOfAnyBytes(broken.rest), 0);
  return { ...answer, data: [record], pagination: { total_records: 1, has_next_page: false } };
}
