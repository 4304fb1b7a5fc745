// Reads pages with a broken record: one that is not JSON and whose end is unknown, so that the rest of its page can't be decoded.

import { concatMap, finalize, from, last, map, of, switchMap, tap, throwError } from 'rxjs';
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

export interface BrokenPage {
  readonly broken: {
    /** Index of the broken record on the page. */
    readonly place: number;
    /** Bytes from the start of the broken record to the end of the page. */
    readonly rest: Buffer;
  };
}

export type BrokenResponse = Omit<Answer, 'data' | 'records' | 'total' | 'hasNext' | 'notFound'> &
  BrokenPage;

export const isBroken = (answer: Answer | BrokenResponse): answer is BrokenResponse =>
  'broken' in answer;

interface BrokenPageOptions {
  readonly url: URL;
  /** Requests a page or a part of it. The response counts as broken at the first element that is not JSON, without further tries. */
  readonly request: (query: ListQuery) => Observable<Answer | BrokenResponse>;
  readonly texts: UnreadableTexts;
  readonly clock: LogicalClock;
  /** Whether parts of a page can be requested, as with list offsets. If not, the whole page is requested until it can be read. */
  readonly hasParts: boolean;
}

/**
 * Maximum number of broken records (not JSON) of one page that are each requested alone to get their text. When it is reached, the reader
 * returns a smaller page instead: the first half of the records before the last one requested alone.
 */
const MAX_ALONE = 20;
/** Maximum number of adjacent broken records that a page may have. If it has more, the API is considered at fault, and the page fails. */
const MAX_IN_A_ROW = 10;
/** Number of leading characters by which a broken record is recognized. The characters after them may differ in each response. */
const MAX_COMPARED = 64;

/**
 * Reads a page with a broken record (one that makes the page's JSON unreadable) by further requests. First requests the broken record
 * alone. The response decides how to continue:
 *
 * - Usually it contains the record's exact text. The page is then requested again, and this text is decoded as one unreadable record.
 * - If the record is readable alone, the page was too large for the server or a proxy. The first half of the records before it is returned,
 *   as a smaller page.
 * - If the record truncates the response, or its text differs in each response, the page is read in parts around it.
 *
 * A single record that was requested by its key is returned as an unreadable record. Errors with `API_ANSWER` if the page cannot be read in
 * any of these ways, or if the list is not paged by offset.
 */
export class BrokenPageReader {
  readonly #options: BrokenPageOptions;
  readonly #query: ListQuery;
  readonly #offset: number;
  readonly #pageSize: number;
  readonly #unsettled = new Set<number>();

  constructor(options: BrokenPageOptions, query: ListQuery) {
    this.#options = options;
    this.#query = query;
    this.#offset = query.offset ?? 0;
    this.#pageSize = query.pageSize ?? 0;
  }

  read(page: BrokenResponse): Observable<Answer> {
    this.#unsettled.add(page.span.begin);
    return this.#answer(page).pipe(
      tap(({ span }) => this.#unsettled.delete(span.begin)),
      finalize(() => this.#unsettled.forEach((begin) => this.#options.clock.settle(begin))),
    );
  }

  #answer(page: BrokenResponse): Observable<Answer> {
    if (this.#query.key !== undefined) return of(asResponse(page));
    const hasParts = this.#options.hasParts && this.#query.pageSize !== undefined;
    return hasParts ? this.#around(page.broken.place, 1) : this.#fail();
  }

  #request(part: PagePlace): Observable<Answer | BrokenResponse> {
    return this.#options
      .request({ ...this.#query, ...part })
      .pipe(tap(({ span }) => this.#unsettled.add(span.begin)));
  }

  #requestWhole(part: PagePlace): Observable<Answer> {
    return this.#request(part).pipe(
      map((answer) => {
        if (isBroken(answer)) throw this.#error();
        return answer;
      }),
    );
  }

  #error(): CellarstreamError {
    const address = loggableAddress(this.#options.url);
    const message = `${address} sent a record that is not JSON, and the records around it can't be read either`;
    return new CellarstreamError('API_ANSWER', message, { context: { offset: this.#offset } });
  }

  #fail(): Observable<never> {
    return throwError(() => this.#error());
  }

  /**
   * Reads a page whose first broken record (one that makes the page's JSON unreadable) is at index `place`: requests that record alone,
   * then the records before and after it.
   *
   * @param alone Number of broken records of the page that have been requested alone, including this one.
   */
  #around(place: number, alone: number): Observable<Answer> {
    const offset = this.#offset;
    return this.#request({ offset: offset + place, pageSize: 1 }).pipe(
      switchMap((one) => {
        if (isBroken(one)) return this.#across(place, one);
        if (malformedTextIn(one) === undefined || alone === MAX_ALONE) {
          // All records in front of the broken one may be too large a page as well.
          return place === 0
            ? this.#fail()
            : this.#requestWhole({ offset, pageSize: Math.ceil(place / 2) });
        }
        return this.#request({ offset, pageSize: this.#pageSize }).pipe(
          switchMap((again) => {
            if (!isBroken(again)) return of(again);
            const next = again.broken.place;
            // The page is broken at the same record: its text differs in each response, or the server returns smaller pages than
            // requested.
            return next > place ? this.#around(next, alone + 1) : this.#across(place, one);
          }),
        );
      }),
    );
  }

  /**
   * Reads a page around a broken record: one that truncates the response, or whose text differs in every response. Requests the records
   * after it, the records before it, and then the broken record once more. Emits the page joined from these responses, in which the broken
   * record is an unreadable record; the same holds for broken records directly after it. Errors if the two responses to a broken record do
   * not begin with the same characters, because the list has probably changed meanwhile. A change that is undone between the two requests
   * is not noticed.
   *
   * @param place Index of the broken record on the page.
   * @param one Response to the first request for the broken record alone.
   */
  #across(place: number, one: Answer | BrokenResponse): Observable<Answer> {
    const at = this.#offset + place;
    const row = [one];
    const before$: Observable<Pick<Answer, 'data' | 'age'>> =
      place > 0 ? this.#requestWhole({ offset: this.#offset, pageSize: place }) : of({ data: [] });
    return this.#behind(row, at + 1).pipe(
      switchMap((after) =>
        before$.pipe(
          switchMap((before) => {
            if (before.data.length !== place) return this.#fail();
            return this.#again(row, at).pipe(map((end) => this.#joined(before, row, after, end)));
          }),
        ),
      ),
    );
  }

  /**
   * Requests the records of the page that follow a broken record, from list offset `offset` to the next broken one, and emits the response.
   * If the record at `offset` is broken as well, adds its response to `row` (the adjacent broken records so far), and continues with the
   * next offset. Errors if more than `MAX_IN_A_ROW` adjacent records are broken.
   */
  #behind(row: (Answer | BrokenResponse)[], offset: number): Observable<Answer> {
    const pageSize = Math.max(1, this.#offset + this.#pageSize - offset);
    return this.#request({ offset, pageSize }).pipe(
      switchMap((answer) => {
        if (!isBroken(answer)) return of(answer);
        const { place: good } = answer.broken;
        if (good > 0) return this.#requestWhole({ offset, pageSize: good });
        return this.#request({ offset, pageSize: 1 }).pipe(
          switchMap((next) => {
            if (!isBroken(next)) return of(next);
            return row.push(next) > MAX_IN_A_ROW ? this.#fail() : this.#behind(row, offset + 1);
          }),
        );
      }),
    );
  }

  /**
   * Requests each broken record in `row` once more, by a request for one record: the first at list offset `offset`, the others at the
   * offsets after it. Emits the logical time at which the last request ended. Errors with `API_ANSWER` if a record does not begin with the
   * same characters as before, because it has then moved within the list.
   */
  #again(row: readonly (Answer | BrokenResponse)[], offset: number): Observable<number> {
    return from(row).pipe(
      concatMap((each, nth) =>
        this.#request({ offset: offset + nth, pageSize: 1 }).pipe(
          map((answer) => {
            if (beginning(answer) !== beginning(each)) throw this.#error();
            return answer.span.end;
          }),
        ),
      ),
      last(),
    );
  }

  #joined(
    before: Pick<Answer, 'data' | 'age'>,
    row: readonly (Answer | BrokenResponse)[],
    after: Answer,
    end: number,
  ): Answer {
    const [one] = row;
    const at = this.#offset + before.data.length;
    const unreadable = row.map((each, nth) => {
      if (isBroken(each)) this.#options.texts.add(each.broken.rest);
      return PageRecord.unreadable(malformedTextIn(each)!, at + nth);
    });
    const { span, serverTime, elapsedMs = 0, age } = one!;
    return {
      span: { begin: span.begin, end },
      serverTime,
      elapsedMs,
      age: oldestOf([before.age, age, after.age]),
      data: [...before.data, ...unreadable, ...after.data],
      total: after.total,
      hasNext: after.hasNext,
    };
  }
}

/** Returns the text of the response's first record if that text is not JSON, otherwise undefined. */
function malformedTextIn(answer: Answer | BrokenResponse): string | undefined {
  if (isBroken(answer)) return textOfAnyBytes(answer.broken.rest);
  const first = recordsOf(answer).at(0);
  return first?.unreadableAt === undefined ? undefined : (first.json as string);
}

const beginning = (answer: Answer | BrokenResponse) =>
  malformedTextIn(answer)?.slice(0, MAX_COMPARED);

function asResponse({ broken, ...answer }: BrokenResponse): Answer {
  const record = PageRecord.unreadable(textOfAnyBytes(broken.rest), 0);
  return { ...answer, data: [record], total: 1, hasNext: false };
}
