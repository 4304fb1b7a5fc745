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
import { recordsOf } from '../../streams/decode/answer.ts';
import type { Answer, ListRequest } from '../../streams/decode/answer.ts';
import type { ProbeDates } from '../../streams/paging/date-negotiation.ts';
import type { ProbeReply } from '../../streams/paging/date-probe.ts';
import { whyGivenUp } from '../../streams/decode/dated-patience.ts';
import { whyRefused } from './dated-scan.ts';
import type { ReadLane, RefetchBatch } from './read-batch.ts';

export interface ProbeLaneOptions {
  readonly lane: ReadLane;
  readonly request: ListRequest;
  readonly pageSize: number;
}

/** A step of a series of questions: an answer's records on their way to be published, or what the series has found. */
export type ProbeStep<Finding> =
  RefetchBatch | { readonly lane: 'found'; readonly finding: Finding };

/** Puts a series of questions to a list, one after the other. What the answers bring is published like a record read again. */
export type ProbeLane = <Finding>(
  steps: Generator<ProbeDates, Finding, ProbeReply>,
) => Observable<ProbeStep<Finding>>;

/** Records of an answer that a probe looks at. */
const PAGE_SIZE = 100;
const REFUSED: ProbeReply = { stamps: [], isWhole: false, isRefused: true };

interface Asked {
  readonly reply: ProbeReply;
  readonly batch?: RefetchBatch;
}

export function probeLane(options: ProbeLaneOptions): ProbeLane {
  const { lane, request } = options;
  const pageSize = Math.min(PAGE_SIZE, options.pageSize);

  const arrived = (answer: Answer): Asked => {
    const stamps = recordsOf(answer).updatedAt();
    const isWhole = !answer.pagination.has_next_page;
    const reply = { stamps, isWhole, isRefused: false };
    return { reply, batch: { lane: 'reread', ...lane.seen(answer) } };
  };
  /** Errors as the request does. The place in memory is the batch's from its answer on. */
  const sent = (dates: ProbeDates): Observable<Asked> =>
    lane.permits.acquire.pipe(
      switchMap(() => {
        let isArrived = false;
        return request({ ...dates, offset: 0, pageSize }, lane.limit).pipe(
          map((answer) => {
            isArrived = true;
            return arrived(answer);
          }),
          take(1),
          finalize(() => !isArrived && lane.permits.release()),
        );
      }),
    );
  const asked = (dates: ProbeDates): Observable<Asked> => {
    if (dates.modifiedFromDate === undefined) return sent(dates);
    return sent(dates).pipe(
      catchError((error: unknown) => {
        const why = whyRefused(error);
        if (why === undefined) return throwError(() => error);
        const refused = { reply: { ...REFUSED, isUnanswered: why === 'unanswered' } };
        if (whyGivenUp(error) === undefined) return of(refused);
        // Dates are to blame only if a request without them is answered.
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
