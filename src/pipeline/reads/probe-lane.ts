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
import type { ListRequest } from '../../streams/decode/response.ts';
import type { ProbeDates, ProbeReply } from '../../streams/paging/date-probe.ts';
import { giveUpReason } from '../../streams/decode/dated-patience.ts';
import { dateRefusal } from './dated-scan.ts';
import type { ReadLane, RefetchBatch } from './read-batch.ts';

/**
 * Sends probe requests, one after another, that measure what a list's date parameters mean. Emits the records of the responses, to be
 * published like those of refetches. Finally calls `onFinding` with the result of `steps`, and completes.
 */
export type ProbeLane = <Finding>(
  steps: Generator<ProbeDates, Finding, ProbeReply>,
  onFinding: (finding: Finding) => void,
) => Observable<RefetchBatch>;

/** Maximum page size of a probe request, in records. */
const PAGE_SIZE = 100;
const REFUSED_REPLY: ProbeReply = { stamps: [], isWhole: false, isRefused: true };

interface ProbeResponse {
  readonly reply: ProbeReply;
  readonly batch?: RefetchBatch | undefined;
}

export function probeLane(lane: ReadLane, request: ListRequest, maxPageSize: number): ProbeLane {
  const pageSize = Math.min(PAGE_SIZE, maxPageSize);

  /**
   * Sends one probe request. Its page slot is freed once the batch of the response is committed or dropped, or at once if there is no
   * response.
   */
  const sent = (dates: ProbeDates): Observable<ProbeResponse> =>
    lane.pageSlots.acquire.pipe(
      switchMap(() => {
        let isArrived = false;
        return request({ ...dates, offset: 0, pageSize }, lane.limit).pipe(
          map((answer): ProbeResponse => {
            isArrived = true;
            const stamps = recordsOf(answer).updatedAt();
            const reply = { stamps, isWhole: !answer.hasNext, isRefused: false };
            return { reply, batch: { lane: 'reread', ...lane.splitAndTellClock(answer) } };
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
        return sent({}).pipe(map(({ batch }) => ({ ...refused, batch })));
      }),
    );
  };

  return (steps, onFinding) => {
    const next = (step: ReturnType<typeof steps.next>): Observable<RefetchBatch> => {
      if (step.done) {
        onFinding(step.value);
        return EMPTY;
      }
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
