// Reads pages with a broken record: an element that is not JSON and whose end is unknown, so that the rest of its page cannot be read.

import { concat, defer, finalize, last, map, of, switchMap, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { textOfAnyBytes } from '../../schemas/json/json-bytes.ts';
import { oldestOf } from '../http/response-age.ts';
import { loggableAddress } from '../http/http.ts';
import type { LogicalClock } from '../http/logical-clock.ts';
import type { PagePlace } from '../http/page-plan.ts';
import type { ListQuery } from '../http/page-request.ts';
import { PageRecord } from '../records/page-record.ts';
import { recordsOf } from './response.ts';
import type { Answer } from './response.ts';
import type { UnreadableTexts } from './decoded-page.ts';

/** A page with a record that is not JSON and whose end is unknown. */
export interface BrokenPage {
  readonly broken: {
    /** Index of the broken record on the page; the records before it were decoded correctly. */
    readonly place: number;
    /** Bytes from the start of the broken record to the end of the page. */
    readonly rest: Buffer;
  };
}

/** A response whose page is broken: one of its records is not JSON and has no known end, so that the rest cannot be decoded. */
export type BrokenResponse = Omit<Answer, 'data' | 'records' | 'pagination' | 'notFound'> &
  BrokenPage;

export const isBroken = (answer: Answer | BrokenResponse): answer is BrokenResponse =>
  'broken' in answer;

interface BrokenPagesOptions {
  readonly url: URL;
  /** Requests another page, once; a response that is not JSON is accepted as it is. */
  readonly request: (query: ListQuery) => Observable<Answer | BrokenResponse>;
  readonly texts: UnreadableTexts;
  /** Logical clock on which the reads of responses that are not passed on are settled. */
  readonly clock: LogicalClock;
}

/**
 * Maximum number of broken records of a page that are requested singly. If the page has more, only the records in front of the next broken
 * one are returned.
 */
const MAX_ALONE = 20;
/** Upper bound of adjacent broken records that are read around; a longer row means that the API, not the records, is at fault. */
const MAX_IN_A_ROW = 10;
/** Number of leading characters by which a broken record is recognized; the rest of its text may differ in each response. */
const MAX_COMPARED = 64;

/**
 * Creates the function that reads a broken page by further requests. The broken record is requested alone. Usually its exact text is then
 * known, and the page is requested again and decoded around it. If the record is readable alone, the page was too large for the server or
 * a proxy: half of the records in front of the broken one are returned, as a smaller page. Otherwise the records after it are requested
 * separately (see `across`).
 *
 * A single record that was requested by its number is returned as an unreadable record. Errors with `API_ANSWER` if no way succeeds.
 */
export function brokenPages(
  options: BrokenPagesOptions,
): (query: ListQuery, page: BrokenResponse) => Observable<Answer> {
  const { url, texts, clock } = options;

  return (query, page) =>
    defer(() => {
      const { offset = 0, pageSize = 0, orderNumber } = query;
      const unsettled = new Set([page.span.begin]);
      const ask = (part: PagePlace) =>
        options.request({ ...query, ...part }).pipe(tap(({ span }) => unsettled.add(span.begin)));
      const error = () => {
        const message = `${loggableAddress(url)} sent a record that is not JSON, and the records around it can't be read either`;
        return new CellarstreamError('API_ANSWER', message, { context: { offset } });
      };
      const failed = () => throwError(error);
      /** Requests a part of the page; errors if it is broken, too. */
      const whole = (part: PagePlace) =>
        ask(part).pipe(
          map((answer) => {
            if (isBroken(answer)) throw error();
            return answer;
          }),
        );

      const around = (place: number, alone: number): Observable<Answer> => {
        /** Requests half of the records in front of the broken one: all of them may be too large a page as well. */
        const inFront = () =>
          place > 0 ? whole({ offset, pageSize: Math.ceil(place / 2) }) : failed();
        return ask({ offset: offset + place, pageSize: 1 }).pipe(
          switchMap((one) => {
            if (isBroken(one)) return across(place, one);
            if (malformedTextIn(one) === undefined || alone === MAX_ALONE) return inFront();
            return ask({ offset, pageSize }).pipe(
              switchMap((again) => {
                if (!isBroken(again)) return of(again);
                const next = again.broken.place;
                // The page is broken at the same record: its text differs in each response, or the server returns smaller pages than
                // requested.
                return next > place ? around(next, alone + 1) : across(place, one);
              }),
            );
          }),
        );
      };

      /**
       * Reads the page in parts around a broken record, if no response has both the record and those after it: the server fails in the
       * middle of the record and truncates the response, or the record's text differs in every response. Requests the record first (`one`),
       * then the records after it, those before it, and the record again. The parts form one page only if the broken record was at its
       * index both times, with the same beginning. A record that leaves the list and comes back between these requests is not noticed.
       */
      const across = (place: number, one: Answer | BrokenResponse): Observable<Answer> => {
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
        /**
         * Requests each broken record again, and emits the end of each read on the logical clock. Errors if one of the records is no longer
         * at its index.
         */
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
          const unreadable = row.map((each, nth) => {
            if (isBroken(each)) texts.add(each.broken.rest);
            return PageRecord.unreadable(malformedTextIn(each)!, at + nth);
          });
          const { span, serverTime, elapsedMs = 0 } = one;
          return {
            span: { begin: span.begin, end },
            serverTime,
            elapsedMs,
            age: oldestOf([before.age, one.age, next.age]),
            data: [...before.data, ...unreadable, ...next.data],
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
        if (orderNumber !== undefined) return of(asResponse(page));
        return query.pageSize === undefined ? failed() : around(page.broken.place, 1);
      };
      return found().pipe(
        tap(({ span }) => unsettled.delete(span.begin)),
        finalize(() => unsettled.forEach((begin) => clock.settle(begin))),
      );
    });
}

/** Returns the text of a response's first record if that is not JSON; undefined if it is. */
function malformedTextIn(answer: Answer | BrokenResponse): string | undefined {
  if (isBroken(answer)) return textOfAnyBytes(answer.broken.rest);
  const first = recordsOf(answer).at(0);
  return first?.unreadableAt === undefined ? undefined : (first.json as string);
}

const beginning = (answer: Answer | BrokenResponse) =>
  malformedTextIn(answer)?.slice(0, MAX_COMPARED);

function asResponse({ broken, ...answer }: BrokenResponse): Answer {
  const record = PageRecord.unreadable(textOfAnyBytes(broken.rest), 0);
  return { ...answer, data: [record], pagination: { total_records: 1, has_next_page: false } };
}
