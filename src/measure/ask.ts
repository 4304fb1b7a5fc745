// Sends the requests of experiments: each once, without retries, and decoded like the pages of the service.

import { catchError, map, of, switchMap, throwError } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Api } from '../account/api.ts';
import { CellarstreamError } from '../core/errors.ts';
import type { ListDescription } from '../description/description.ts';
import { parseJson } from '../schemas/json/json.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import { decodedPage, stepwise } from '../streams/decode/decoded-page.ts';
import { parsingDecoder } from '../streams/decode/decoder.ts';
import { ResponseLayout } from '../streams/decode/response-layout.ts';
import type { PagePatience, RawPage } from '../streams/http/page-request.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import type { KeyOf } from '../streams/records/key-of.ts';
import { Stamps } from '../streams/records/stamps.ts';
import type { TimeFormat } from '../description/time-format.ts';
import type { Question, Reply } from './replies.ts';

export interface AskOptions {
  readonly request: Api['request'];
  readonly list: ListDescription;
  readonly times: TimeFormat;
  readonly limit: Limit;
  /** Called with the records of the first response that has any. Returns the function that returns the key of a record. */
  readonly keyOfFirst: (records: readonly JsonValue[]) => KeyOf;
  readonly scheduler: SchedulerLike;
}

/**
 * Handling of failed test requests of `check --measure`. The failure is a result of the test: the request is not repeated, and the failure
 * is not blamed on the access token.
 */
const ONCE: PagePatience = { isGivenUp: () => true, isOfPage: () => true };
/**
 * HTTP statuses from 400 to 499 with a temporary cause, which say nothing about the request. Every other status from 400 to 499 means that
 * the API refuses the request.
 */
const PASSING: ReadonlySet<number> = new Set([401, 408, 425, 429]);
/** Query parameter that no API documents: sent to find out whether the API ignores or refuses unknown parameters. */
const UNKNOWN = { cellarstream_unknown: '1' };

/** Returns the function that sends a test request of `check --measure` to a list, and emits the decoded response. */
export function asker(options: AskOptions): (question: Question) => Observable<Reply> {
  const { request, list, times, limit, keyOfFirst, scheduler } = options;
  const layout = new ResponseLayout(list);
  const stamps = new Stamps(list, times);
  const plain = request(list);
  const unknown = request({ ...list, query: { ...list.query, ...UNKNOWN } });
  let keyOf: KeyOf | undefined;

  const replyTo = (question: Question, raw: RawPage): Observable<Reply> => {
    const { serverTime } = raw;
    raw.reportPage(true);
    if (raw.isNotFound || raw.isEmpty) return of({ rows: [], isGone: raw.isNotFound });
    const { key, offset, isTotal } = question;
    if (isTotal) return of({ rows: [], total: layout.totalIn(parseJson(raw.text)) });
    const shape = key === undefined ? layout : layout.single;
    const decode = parsingDecoder(undefined, stamps);
    return stepwise(() => decodedPage(raw, shape, decode, offset), scheduler).pipe(
      map((page) => {
        if (typeof page === 'string') throw new CellarstreamError('API_ANSWER', page);
        const { records, total, hasNext, next } = page;
        const json = records.all().map((record) => record.json);
        if (json.length > 0) keyOf ??= keyOfFirst(json);
        const rows = json.map((each) => ({
          key: keyOf?.(each),
          json: each,
          at: stamps.updatedAt(each),
        }));
        records.settle();
        return { rows, total, hasNext, next, serverTime };
      }),
    );
  };
  return (question) => {
    const { isUnknown, ...query } = question;
    return (isUnknown ? unknown : plain)(query, limit, ONCE).pipe(
      switchMap((response) => replyTo(question, response)),
      catchError((error: unknown) => {
        const status = error instanceof CellarstreamError ? error.context.status : undefined;
        const isRefusal = typeof status === 'number' && status >= 400 && status < 500;
        return isRefusal && !PASSING.has(status)
          ? of({ rows: [], refusedWith: status })
          : throwError(() => error);
      }),
    );
  };
}
