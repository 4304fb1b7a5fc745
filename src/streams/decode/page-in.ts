import { catchError, map, of } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { isJsonObject, parseJson, stringifyJson } from '../../schemas/json/json.ts';
import { pageElements } from '../../schemas/json/page-elements.ts';
import { pageOf } from './answer.ts';
import type { Page } from './answer.ts';
import type { ListQuery } from '../http/list-query.ts';
import { where } from '../http/http.ts';
import { isNoJson, pageAround } from './page-around.ts';
import type { AroundPage } from './page-around.ts';
import type { Decoder } from './decoder.ts';
import type { RawPage } from '../http/page-request.ts';
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
  /** Makes a record of what is at a place of the page. */
  readonly decode: Decoder;
  /** What is known to be no JSON need not be tried again. */
  readonly texts: UnreadableTexts;
  /** Asked of an answer that is no JSON: whether it is taken for what the API has to say. */
  readonly isLastTry: () => boolean;
  readonly scheduler: SchedulerLike;
}

/**
 * The page that an answer is; errors with `API_ANSWER` when it is none, or may be another the next time,
 * and with what `decode` throws. A record that is no JSON comes as an unreadable one once it was tried often enough.
 */
export function pageIn(raw: RawPage, options: PageInOptions): Observable<Page | BrokenPage> {
  const { url, query, decode, texts, isLastTry, scheduler } = options;
  if (raw.isNotFound) return of(NOTHING);
  const context = { offset: query.offset };
  const failed = (what: string) =>
    new CellarstreamError('API_ANSWER', `${where(url)} sent ${what}`, { context });

  const around = (error: Error): Observable<Page | BrokenPage> =>
    stepwise(() => pageAround(raw.body, { query, decode, texts }), scheduler).pipe(
      map((found) => {
        const isTried = isLastTry() || (found !== undefined && isKnown(found, texts));
        if (!found || !isTried) {
          // The parser's own message quotes the text, which may hold personal fields.
          throw failed(
            `an answer that is not JSON${error instanceof RangeError ? ' (RangeError)' : ''}`,
          );
        }
        const { page, place, rest } = found;
        if (!page) return { broken: { place, rest } };
        found.texts.forEach(texts.add);
        return page;
      }),
    );
  return stepwise(() => pageOfBody(raw, decode), scheduler).pipe(
    map((page) => {
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

const NOTHING = {
  data: [],
  pagination: { total_records: 0, has_next_page: false },
  notFound: true,
} as const;

/** The page, its elements one by one; undefined where it is JSON, and no page. */
function* pageOfBody(raw: RawPage, decode: Decoder): Generator<void, Page | undefined> {
  const parts = yield* pageElements(raw.body, (at) => decode(raw.body, at));
  if (parts) return pageOf(parseJson(parts.rest), parts.elements);
  // Of another layout: each element is written as it would stand in a page, and decoded from that.
  const body = parseJson(raw.text);
  const data = isJsonObject(body) ? body.data : undefined;
  if (!Array.isArray(data)) return undefined;
  return pageOf(
    body,
    data.map((each) => decode(Buffer.from(stringifyJson(each)), 0).value),
  );
}
