import { catchError, concatMap, defer, map, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { describeError, isOfOneResource } from '../../core/errors.ts';
import type { Brought, ResyncBatch } from './read-batch.ts';
import type { Outcome, Resync } from '../../account/resync-requests.ts';
import type { SingleRecords } from './single-records.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import type { Answer } from '../../streams/decode/answer.ts';
import type { Permits } from '../../streams/flow/permits.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';

export interface ResyncReadsOptions {
  /** Gives the next request once the one before is read. */
  readonly requests$: Observable<Resync>;
  /** Reads the list: all of it, or from a time on, ms; each page takes one of `permits`. */
  readonly scan: (since: number | null) => Observable<ScanPage>;
  /** Undefined where single records can't be asked for. */
  readonly single: SingleRecords | undefined;
  /** Of one place. */
  readonly permits: Permits;
  readonly limit: Limit;
  readonly moment: () => Span;
  readonly arrived: (answer: Answer) => Brought;
  /** What settles a batch that has no answer. */
  readonly settling: (span: Span) => () => void;
  readonly onBegin: (resync: Resync) => void;
}

/**
 * Reads what is to be published again, one request after the other. What the API has against a
 * request fails that request alone; what can pass is waited for, as ever.
 */
export function resyncReads(options: ResyncReadsOptions): Observable<ResyncBatch> {
  const { requests$, scan, single, permits, limit, moment, arrived, settling, onBegin } = options;

  const told = (resync: Resync, outcome: Outcome): ResyncBatch => {
    const span = moment();
    const step = { resync, outcome };
    const nothing = { keyed: [], runs: [], rejected: [], rejectedAt: [] };
    return { lane: 'resync', step, ...nothing, span, settle: settling(span) };
  };
  const order = (resync: Resync, number: string): Observable<ResyncBatch> =>
    permits.acquire.pipe(
      switchMap(() => (single ? single.ask(number, limit) : of(null))),
      map((answer) => {
        if (answer === null) return told(resync, refused(resync.resource));
        if (answer === undefined) return told(resync, unknown(number));
        const outcome = done(answer.data.length === 0 ? `the API has no order ${number}` : null);
        return { lane: 'resync', ...arrived(answer), step: { resync, outcome } };
      }),
    );
  const list = (resync: Resync): Observable<ResyncBatch> => {
    let cutAt: number | undefined;
    return scan(resync.since).pipe(
      map((page): ResyncBatch => {
        const { answer, offset } = page;
        if (answer.isCut) cutAt = offset + recordsOf(answer).length;
        const outcome = cutAt === undefined ? done(null) : cut(cutAt);
        const step = page.next ? { resync } : { resync, outcome };
        return { lane: 'resync', ...arrived(page.answer), page, step };
      }),
      catchError((error: unknown) =>
        // The request that failed has taken the place that this reading gives back.
        isOfOneResource(error)
          ? of(told(resync, { status: 'failed', message: describeError(error) }))
          : throwError(() => error),
      ),
    );
  };
  return requests$.pipe(
    concatMap((resync) =>
      defer(() => {
        onBegin(resync);
        const { orderNumber } = resync;
        return orderNumber === null ? list(resync) : order(resync, orderNumber);
      }),
    ),
  );
}

const done = (message: string | null): Outcome => ({ status: 'done', message });

const refused = (resource: string): Outcome => ({
  status: 'refused',
  message: `an order number is of orders: the API can't be asked for one of ${resource}`,
});

const cut = (offset: number): Outcome => ({
  status: 'failed',
  message: `the API serves no record behind the first ${offset} of the list: those in front of it are published again`,
});

const unknown = (number: string): Outcome => ({
  status: 'failed',
  message: `the API does not tell whether there is an order ${number}: the service's log has its answer`,
});
