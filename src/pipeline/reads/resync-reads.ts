import { catchError, concatMap, defer, map, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { describeError, isResourceError } from '../../core/errors.ts';
import type { ReadLane, ResyncBatch } from './read-batch.ts';
import type { ResyncOutcome, ResyncJob } from '../../account/signal-jobs.ts';
import type { SingleRecords } from './single-records.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import { recordsOf } from '../../streams/decode/response.ts';

export interface ResyncReadsOptions {
  /** Requests to publish the list or some of its records again. They are queued and handled one after another. */
  readonly requests$: Observable<ResyncJob>;
  /**
   * Scans the list: all records if `since` is null, else those modified since that time (epoch ms). May also emit older records, which are
   * left out later.
   */
  readonly scan: (since: number | null) => Observable<ScanPage>;
  /** Requests single records; undefined if the API can't return single records of the list. */
  readonly single: SingleRecords | undefined;
  /** Names of the lists of which the API can return single records. */
  readonly singleLists: readonly string[];
  /**
   * Lane that requests the single records, and that makes a batch of each response. Must have exactly one page slot, so that a record or
   * page is requested only after the previous batch has been committed or dropped.
   */
  readonly lane: Omit<ReadLane, 'scan' | 'split' | 'settler'>;
  /** Called before the first read for a resync request. */
  readonly onBegin: (resync: ResyncJob) => void;
}

/**
 * Reads the records for resync requests (requests to publish records again). An error that concerns only this list, such as a refusal of
 * the API, fails only the current resync request.
 */
export function resyncReads(options: ResyncReadsOptions): Observable<ResyncBatch> {
  const { requests$, scan, single, singleLists, lane, onBegin } = options;

  const outcomeBatch = (resync: ResyncJob, outcome: ResyncOutcome): ResyncBatch => ({
    ...{ lane: 'resync', step: { resync, outcome } },
    ...lane.noRecords(),
  });
  const record = (resync: ResyncJob, key: string): Observable<ResyncBatch> =>
    lane.pageSlots.acquire.pipe(
      switchMap(() => (single ? single.request(key, lane.limit) : of(null))),
      map((answer) => {
        if (answer === null)
          return outcomeBatch(resync, refusedOutcome(resync.resource, singleLists));
        if (answer === undefined)
          return outcomeBatch(
            resync,
            failedOutcome(
              `the API's response does not show whether the record ${key} exists: see the service's log for the response`,
            ),
          );
        const message =
          answer.data.length === 0 ? `the API has no record ${key} in ${resync.resource}` : null;
        const step = { resync, outcome: doneOutcome(message) };
        return { lane: 'resync', ...lane.splitAndTellClock(answer), step };
      }),
    );
  const list = (resync: ResyncJob): Observable<ResyncBatch> => {
    let cutAt: number | undefined;
    return scan(resync.since).pipe(
      map((page): ResyncBatch => {
        const { answer, offset } = page;
        if (answer.isCut) cutAt = offset + recordsOf(answer).length;
        const outcome =
          cutAt === undefined
            ? doneOutcome(null)
            : failedOutcome(
                `the API serves only the first ${cutAt} records of the list: those were published again, later ones were not`,
              );
        const step = page.next ? { resync } : { resync, outcome };
        return { lane: 'resync', ...lane.splitAndTellClock(answer), page, step };
      }),
      catchError((error: unknown) =>
        // The failed request has acquired the page slot that settling the outcome's batch releases.
        isResourceError(error)
          ? of(outcomeBatch(resync, failedOutcome(describeError(error))))
          : throwError(() => error),
      ),
    );
  };
  return requests$.pipe(
    concatMap((resync) =>
      defer(() => {
        onBegin(resync);
        const { key } = resync;
        return key === null ? list(resync) : record(resync, key);
      }),
    ),
  );
}

const refusedOutcome = (resource: string, lists: readonly string[]): ResyncOutcome => ({
  status: 'refused',
  message: `send the request without order_number: the API serves no single records of ${resource}${lists.length > 0 ? `, only of ${lists.join(', ')}` : ''}`,
});

const doneOutcome = (message: string | null): ResyncOutcome => ({ status: 'done', message });
const failedOutcome = (message: string): ResyncOutcome => ({ status: 'failed', message });
