// Reads pages with a broken record: one that is not JSON and whose end is unknown, so that the rest of its page can't be decoded.

import { finalize, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { textOfAnyBytes } from '../../schemas/json/json-bytes.ts';
import { inSteps, waitFor } from '../flow/steps.ts';
import type { Steps } from '../flow/steps.ts';
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
    /** Bytes from the start of the broken record to the end of the response body. */
    readonly rest: Buffer;
  };
}

export type BrokenResponse = Omit<Answer, 'data' | 'records' | 'total' | 'hasNext' | 'notFound'> &
  BrokenPage;

export const isBroken = (answer: Answer | BrokenResponse): answer is BrokenResponse =>
  'broken' in answer;

interface BrokenPageOptions {
  readonly url: URL;
  /**
   * Requests a page or a part of it. Elements that are not JSON become unreadable records; if the end of one can't be determined, the
   * response is a {@link BrokenResponse}.
   */
  readonly request: (query: ListQuery) => Observable<Answer | BrokenResponse>;
  readonly texts: UnreadableTexts;
  readonly clock: LogicalClock;
  /**
   * Whether a part of a page can be requested alone: true if the list is paged by offset. If false, a page with a broken record fails until
   * it can be read as a whole.
   */
  readonly hasParts: boolean;
}

/**
 * Maximum number of broken records (not JSON) of one page that are requested alone, one after the other, to get their text. Once it is
 * reached, a smaller page is returned instead.
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
 * - Usually the response contains the exact text of the record. The page is requested again, and this text becomes an unreadable record.
 * - If the record is readable alone, the page was too large for the server or a proxy. A shorter page without the record is returned.
 * - If the record truncates the response, or its text differs in each response, the page is read in parts around the record.
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
    return inSteps(() => this.#answer(page)).pipe(
      tap(({ span }) => this.#unsettled.delete(span.begin)),
      finalize(() => this.#unsettled.forEach((begin) => this.#options.clock.settle(begin))),
    );
  }

  *#answer(page: BrokenResponse): Steps<Answer> {
    if (this.#query.key !== undefined) return asResponse(page);
    const hasParts = this.#options.hasParts && this.#query.pageSize !== undefined;
    return hasParts ? yield* this.#around(page.broken.place) : this.#fail();
  }

  *#request(part: PagePlace): Steps<Answer | BrokenResponse> {
    const answer = yield* waitFor(this.#options.request({ ...this.#query, ...part }));
    this.#unsettled.add(answer.span.begin);
    return answer;
  }

  *#requestWhole(part: PagePlace): Steps<Answer> {
    const answer = yield* this.#request(part);
    return isBroken(answer) ? this.#fail() : answer;
  }

  #fail(): never {
    const address = loggableAddress(this.#options.url);
    const message = `${address} sent a record that is not JSON, and the records around it can't be read either`;
    throw new CellarstreamError('API_ANSWER', message, { context: { offset: this.#offset } });
  }

  /** Reads a page whose first broken record (one that makes the page's JSON unreadable) is at index `first`. */
  *#around(first: number): Steps<Answer> {
    const offset = this.#offset;
    let place = first;
    for (let alone = 1; ; alone += 1) {
      const one = yield* this.#request({ offset: offset + place, pageSize: 1 });
      if (isBroken(one)) return yield* this.#across(place, one);
      if (malformedTextIn(one) === undefined || alone === MAX_ALONE) {
        // All records in front of the broken one may be too large a page as well.
        if (place === 0) return this.#fail();
        return yield* this.#requestWhole({ offset, pageSize: Math.ceil(place / 2) });
      }
      const again = yield* this.#request({ offset, pageSize: this.#pageSize });
      if (!isBroken(again)) return again;
      // If the page is broken at the same record, its text differs in each response, or the server returns smaller pages than requested.
      if (again.broken.place <= place) return yield* this.#across(place, one);
      place = again.broken.place;
    }
  }

  /**
   * Reads a page in parts around a broken record: one that truncates the response, or whose text differs in every response. Returns the
   * page with an unreadable record in place of each broken one. The requests are:
   *
   * 1. The records after the broken record. If the first of them are broken as well, each of these alone.
   * 2. The records before the broken record.
   * 3. Each broken record alone once more. If its text now begins differently, the list has probably changed: throws.
   *
   * @param place Index of the broken record on the page.
   * @param one Response to the first request for this record alone.
   */
  *#across(place: number, one: Answer | BrokenResponse): Steps<Answer> {
    const offset = this.#offset;
    const row = [one];
    const after = yield* this.#behind(row, offset + place + 1);
    const before: Pick<Answer, 'data' | 'age'> =
      place > 0 ? yield* this.#requestWhole({ offset, pageSize: place }) : { data: [] };
    if (before.data.length !== place) return this.#fail();
    let end = 0;
    for (const [nth, each] of row.entries()) {
      const again = yield* this.#request({ offset: offset + place + nth, pageSize: 1 });
      if (beginning(again) !== beginning(each)) return this.#fail(); // it has moved within the list
      end = again.span.end;
    }
    return this.#joined(before, row, after, end);
  }

  /**
   * Requests the page's records from list offset `first` up to the next broken one, and returns the response. If the record at `first` is
   * itself broken, it is requested alone, the response is added to `row`, and reading continues after the record.
   *
   * @param row Responses with the adjacent broken records so far.
   */
  *#behind(row: (Answer | BrokenResponse)[], first: number): Steps<Answer> {
    for (let offset = first; ; offset += 1) {
      const pageSize = Math.max(1, this.#offset + this.#pageSize - offset);
      const answer = yield* this.#request({ offset, pageSize });
      if (!isBroken(answer)) return answer;
      const { place: good } = answer.broken;
      if (good > 0) return yield* this.#requestWhole({ offset, pageSize: good });
      const next = yield* this.#request({ offset, pageSize: 1 });
      if (!isBroken(next)) return next;
      if (row.push(next) > MAX_IN_A_ROW) return this.#fail();
    }
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
