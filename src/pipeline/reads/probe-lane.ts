import {
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  map,
  of,
  switchMap,
  take,
  throwError,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { recordsOf } from '../../streams/decode/response.ts';
import type { Answer, ListRequest } from '../../streams/decode/response.ts';
import type { ProbeDates, ProbeReply } from '../../streams/paging/date-probe.ts';
import { giveUpReason } from '../../streams/decode/dated-patience.ts';
import { dateRefusal } from './dated-scan.ts';
import type { ReadLane, RefetchBatch } from './read-batch.ts';

/**
 * Output of a series of probe requests, which measure what a list's date parameters mean: batches with the records of the responses, to be
 * published; at the end the finding.
 */
export type ProbeStep<Finding> =
  RefetchBatch | { readonly lane: 'found'; readonly finding: Finding };

/** Runs a series of probe requests one after another. Records in the responses are published like refetched records. */
export type ProbeLane = <Finding>(
  steps: Generator<ProbeDates, Finding, ProbeReply>,
) => Observable<ProbeStep<Finding>>;

/** Maximum page size of a probe request, in records. */
const PAGE_SIZE = 100;
const REFUSED_REPLY: ProbeReply = { stamps: [], isWhole: false, isRefused: true };

interface ProbeResponse {
  readonly reply: ProbeReply;
  readonly batch?: RefetchBatch;
}

export function probeLane(lane: ReadLane, request: ListRequest, maxPageSize: number): ProbeLane {
  const pageSize = Math.min(PAGE_SIZE, maxPageSize);

  const arrived = (answer: Answer): ProbeResponse => {
    const stamps = recordsOf(answer).updatedAt();
    const isWhole = !answer.hasNext;
    const reply = { stamps, isWhole, isRefused: false };
    return { reply, batch: { lane: 'reread', ...lane.splitAndTellClock(answer) } };
  };
  /** Sends one probe request. Its page slot is freed here if there is no response, else once the batch of the response is committed. */
  const sent = (dates: ProbeDates): Observable<ProbeResponse> =>
    lane.pageSlots.acquire.pipe(
      switchMap(() => {
        let isArrived = false;
        return request({ ...dates, offset: 0, pageSize }, lane.limit).pipe(
          map((answer) => {
            isArrived = true;
            return arrived(answer);
          }),
          take(1),
          finalize(() => !isArrived && lane.pageSlots.release()),
        );
      }),
    );
  const asked = (dates: ProbeDates): Observable<ProbeResponse> => {
    if (dates.from === undefined) return sent(dates);
    return sent(dates).pipe(
      catchError((error: unknown) => {
        const why = dateRefusal(error);
        if (why === undefined) return throwError(() => error);
        const refused = { reply: { ...REFUSED_REPLY, isUnanswered: why === 'unanswered' } };
        if (giveUpReason(error) === undefined) return of(refused);
        // The dates are the cause only if a request without them succeeds.
        return sent({}).pipe(map(({ batch }) => ({ ...refused, ...(batch && { batch }) })));
      }),
    );
  };

  return <Finding>(steps: Generator<ProbeDates, Finding, ProbeReply>) => {
    const next = (step: IteratorResult<ProbeDates, Finding>): Observable<ProbeStep<Finding>> => {
      if (step.done) return of({ lane: 'found', finding: step.value });
      return asked(step.value).pipe(
        switchMap(({ batch, reply }) =>
          concat(
            batch ? of(batch) : EMPTY,
            defer(() => next(steps.next(reply))),
          ),
        ),
      );
    };
    return defer(() => next(steps.next()));
  };
}
