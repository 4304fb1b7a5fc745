import { catchError, map, of } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { parseJson } from '../../schemas/json/json.ts';
import { pageElements } from '../../schemas/json/page-elements.ts';
import type { ListQuery } from './answer.ts';
import { statusError, where } from './http.ts';
import type { HttpAnswer } from './http.ts';
import { bodyOf, isNoJson, pageAround, pageOf } from './page-around.ts';
import type { AroundPage, Body, Page } from './page-around.ts';
import type { ElementReader } from '../records/sent-record.ts';
import { stepwise } from './stepwise.ts';
import type { UnreadableTexts } from './unreadable-texts.ts';

/** A page with a record that is no JSON, of which nobody can say where it ends. */
export interface BrokenPage {
  readonly broken: {
    /** Of the record in the page: those before it are right. */
    readonly place: number;
    /** From its first byte to the end of the page. */
    readonly rest: Buffer;
  };
}

/** What {@link pageIn} needs. */
export interface PageInOptions {
  readonly url: URL;
  readonly query: ListQuery;
  /** What is at a place of the page. */
  readonly read: ElementReader;
  /** What is known to be no JSON need not be tried again. */
  readonly texts: UnreadableTexts;
  /** Asked of an answer that is no JSON: whether it is taken for what the API has to say. */
  readonly isLastTry: () => boolean;
  readonly scheduler: SchedulerLike;
}

/**
 * The page that an answer is; errors with `API_ANSWER` when it is none, or may be another the next time;
 * with `API_STATUS`, and with what `read` throws. A record that is no JSON comes as an
 * `UnreadableRecord` once it was tried often enough.
 */
export function pageIn(answer: HttpAnswer, options: PageInOptions): Observable<Page | BrokenPage> {
  const { url, query, read, texts, isLastTry, scheduler } = options;
  if (isNotFound(answer, query)) return of(NOTHING);
  const context = { offset: query.offset };
  if (answer.status !== 200) throw statusError(url, answer, context);
  const failed = (what: string) =>
    new CellarstreamError('API_ANSWER', `${where(url)} sent ${what}`, { context });

  const around = (error: Error): Observable<Page | BrokenPage> =>
    stepwise(() => pageAround(answer.body, { query, read, texts }), scheduler).pipe(
      map((found) => {
        const isTried = isLastTry() || (found !== undefined && isKnown(found, texts));
        if (!found || !isTried) {
          // The parser's own message quotes the text, which may hold personal fields.
          throw failed(`what is not JSON${error instanceof RangeError ? ' (RangeError)' : ''}`);
        }
        const { page, place, rest } = found;
        if (!page) return { broken: { place, rest } };
        found.texts.forEach(texts.add);
        return page;
      }),
    );
  return stepwise(() => bodyIn(answer, read), scheduler).pipe(
    map((body) => {
      const page = pageOf(body);
      if (page) return page;
      throw failed('no page: data, pagination.total_records and has_next_page are needed');
    }),
    catchError((error: unknown) => {
      if (!isNoJson(error)) throw error;
      return around(error);
    }),
  );
}

function isKnown({ page, texts, rest }: AroundPage, known: UnreadableTexts): boolean {
  return page ? texts.every(known.has) : known.has(rest);
}

/** How an API may put it that there is no record of a number; but a gateway may say so too. */
function isNotFound(answer: HttpAnswer, { orderNumber }: ListQuery): boolean {
  if (answer.status !== 404 || orderNumber === undefined) return false;
  return answer.text.trimStart().startsWith('{');
}

const NOTHING = {
  data: [],
  pagination: { total_records: 0, has_next_page: false },
  notFound: true,
} as const;

/** A page's elements one by one, those that are known left as they are; of another layout, whole. */
function* bodyIn(answer: HttpAnswer, read: ElementReader): Generator<void, Body> {
  const parts = yield* pageElements(answer.body, (at) => read(answer.body, at));
  if (!parts) return bodyOf(parseJson(answer.text));
  return { ...bodyOf(parseJson(parts.rest)), data: parts.elements };
}
