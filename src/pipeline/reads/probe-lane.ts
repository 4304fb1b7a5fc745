import {
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  map,
  merge,
  of,
  switchMap,
  take,
  throwError,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { isRefusal } from '../../core/errors.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import type { Answer, ListRequest } from '../../streams/decode/answer.ts';
import type { ProbeDates } from '../../streams/paging/date-negotiation.ts';
import type { ProbeReply } from '../../streams/paging/date-probe.ts';
import type { ReadLane, RefetchBatch } from './read-batch.ts';

export interface ProbeLaneOptions {
  readonly lane: ReadLane;
  readonly request: ListRequest;
  readonly pageSize: number;
  readonly scheduler: SchedulerLike;
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
/**
 * How long a dated request may go without an answer, in ms, tries included. If a request without dates is then answered, the dates are to
 * blame. Too small: an API that is slow for a moment counts as one that does not know the form.
 */
const STUCK_MS = 60_000;
const NOTHING: ProbeReply = { stamps: [], isWhole: false, isRefused: false };

interface Asked {
  readonly reply: ProbeReply;
  readonly batch?: RefetchBatch;
}

export function probeLane(options: ProbeLaneOptions): ProbeLane {
  const { lane, request, scheduler } = options;
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
        const answer$ = request({ ...dates, offset: 0, pageSize }, lane.limit).pipe(
          map((answer) => {
            isArrived = true;
            return arrived(answer);
          }),
        );
        const stuck$ = timer(STUCK_MS, scheduler).pipe(map((): Asked => ({ reply: NOTHING })));
        return merge(answer$, stuck$).pipe(
          take(1),
          finalize(() => !isArrived && lane.permits.release()),
        );
      }),
    );
  const refused: Asked = { reply: { ...NOTHING, isRefused: true } };
  const dated = (dates: ProbeDates): Observable<Asked> =>
    sent(dates).pipe(
      catchError((error: unknown) => (isRefusal(error) ? of(refused) : throwError(() => error))),
    );
  const asked = (dates: ProbeDates): Observable<Asked> => {
    if (dates.modifiedFromDate === undefined) return sent(dates);
    return dated(dates).pipe(
      switchMap((one) => {
        if (one.batch || one.reply.isRefused) return of(one);
        return sent({}).pipe(map(({ batch }) => (batch ? { batch, reply: refused.reply } : one)));
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
