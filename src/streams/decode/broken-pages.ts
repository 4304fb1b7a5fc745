import { defer, finalize, map, of, switchMap, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { textOfAnyBytes } from '../../schemas/json/json-bytes.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { acrossBroken } from './across-broken.ts';
import type { Answer } from './answer.ts';
import type { ListQuery } from '../http/list-query.ts';
import { isBroken, unreadIn } from './broken-answer.ts';
import type { BrokenAnswer, Inquiry, Part } from './broken-answer.ts';
import { where } from '../http/http.ts';
import type { Span } from '../http/logical-clock.ts';
import { PageRecord } from '../records/page-record.ts';
import type { UnreadableTexts } from './unreadable-texts.ts';

/** What {@link brokenPages} needs. */
export interface BrokenPagesOptions {
  readonly url: URL;
  /** Asks for something else: what is no JSON is taken for what the API has to say. */
  readonly ask: (query: ListQuery) => Observable<Answer | BrokenAnswer>;
  readonly texts: UnreadableTexts;
  /** Told of answers that nobody will deal with. */
  readonly settle: (span: Span) => void;
}

/** Records of a page that are asked for alone, at most, before what stands in front of them is given. */
const MAX_ALONE = 20;

/**
 * What can be had instead of a broken page. Its record is asked for alone: mostly its text shows then, and
 * the page is read around it, whole. If it can be read alone, the page was too much for somebody: half of
 * what stands in front of it is given, as a smaller page. If none of it helps, the records behind it are read
 * apart: see {@link acrossBroken}.
 *
 * A single record that was asked for by its number comes as it is. Errors with `API_ANSWER` when nothing leads on.
 */
export function brokenPages(
  options: BrokenPagesOptions,
): (query: ListQuery, page: BrokenAnswer) => Observable<Answer> {
  const { url, texts, settle } = options;

  return (query, page) =>
    defer(() => {
      const unsettled = new Map<number, Span>([[page.span.begin, page.span]]);
      const ask = (part: Part) =>
        options.ask({ ...query, ...part }).pipe(tap(({ span }) => unsettled.set(span.begin, span)));
      const { offset = 0, pageSize, orderNumber } = query;
      const failed = () => {
        const message = `${where(url)} sent a record that is not JSON, and the records around it can't be read either`;
        return new CellarstreamError('API_ANSWER', message, { context: { offset } });
      };
      const whole = (part: Part) =>
        ask(part).pipe(
          map((answer) => {
            if (isBroken(answer)) throw failed();
            return answer;
          }),
        );

      const around = (inquiry: Inquiry, place: number, alone: number): Observable<Answer> => {
        /** Half of what was right: all of it might be too much as well. */
        const inFront = () =>
          place > 0
            ? whole({ offset, pageSize: Math.ceil(place / 2) })
            : throwError(() => failed());
        return ask({ offset: offset + place, pageSize: 1 }).pipe(
          switchMap((one) => {
            if (isBroken(one)) return acrossBroken(inquiry, place, one, texts);
            if (unreadIn(one) === undefined || alone === MAX_ALONE) return inFront();
            return ask({ offset, pageSize: inquiry.pageSize }).pipe(
              switchMap((again) => {
                if (!isBroken(again)) return of(again);
                const next = again.broken.place;
                if (next > place) return around(inquiry, next, alone + 1);
                // Its text is another one in each answer, or pages are smaller than they should be.
                return acrossBroken(inquiry, place, one, texts);
              }),
            );
          }),
        );
      };
      const found = (): Observable<Answer> => {
        if (orderNumber !== undefined) return of(asItIs(page));
        if (pageSize === undefined) return throwError(() => failed());
        return around({ offset, pageSize, ask, whole, failed }, page.broken.place, 1);
      };
      return found().pipe(
        tap(({ span }) => unsettled.delete(span.begin)),
        finalize(() => unsettled.forEach(settle)),
      );
    });
}

function asItIs({ broken, ...answer }: BrokenAnswer): Answer {
  const record = PageRecord.unreadable(textOfAnyBytes(broken.rest), 0);
  return { ...answer, data: [record], pagination: { total_records: 1, has_next_page: false } };
}
