import type { Span } from '../../streams/http/logical-clock.ts';
import type { Answer } from '../../streams/decode/answer.ts';
import type { SweepStep } from '../../streams/paging/sweeps.ts';
import type { CertifyAsked } from '../../account/resync-requests.ts';
import type { Brought, SweepBatch } from './read-batch.ts';

export interface SweepBatchesOptions {
  /** When there was nothing to read. */
  readonly moment: () => Span;
  readonly arrived: (answer: Answer) => Brought;
  /** What settles a batch that has no answer. */
  readonly settling: (span: Span) => () => void;
  /** Keeps what reads have seen from being forgotten, until what it gives is called. Left out where that is not needed. */
  readonly hold?: (() => () => void) | undefined;
  /** Whether what the initial snapshot has missed has turned up by the end of a sweep. */
  readonly endCatchesUp: boolean;
  /** The requests for certificates that a reading that has ended answers. */
  readonly asked: () => readonly CertifyAsked[];
}

/** What a step of a sweep brought. */
export function sweepBatch(options: SweepBatchesOptions): (step: SweepStep) => SweepBatch {
  const { moment, arrived, settling, hold, endCatchesUp, asked } = options;
  /** What is absent is judged by the time of the last page, which is settled by then: what was read beside it counts. */
  let letGo: (() => void) | undefined;
  const nothing = (span: Span): Brought => ({
    keyed: [],
    rejected: [],
    rejectedAt: [],
    span,
    settle: settling(span),
  });
  const batch = (step: SweepStep, brought: Brought): SweepBatch => ({
    lane: 'sweep',
    ...brought,
    step,
    catchesUp: endCatchesUp && step.kind === 'end',
  });

  return (step) => {
    switch (step.kind) {
      case 'page':
        letGo?.();
        letGo = hold?.();
        return batch(step, arrived(step.page.answer));
      case 'asked': {
        const { key, since, answer, again } = step;
        const read = batch(step, answer ? arrived(answer) : nothing(moment()));
        const isGone = answer?.data.length === 0 && answer.pagination.total_records === 0;
        // Gone for the first time it stays missing, and is asked for again. What can't be told is not.
        if (!again) return isGone ? read : { ...read, spared: [key] };
        return isGone ? { ...read, gone: { keys: [key], since } } : read;
      }
      case 'absent': {
        const { keys, since, span } = step;
        return { ...batch(step, nothing(span)), gone: { keys, since } };
      }
      case 'asked-once':
        return batch(step, nothing(moment()));
      case 'end': {
        const brought = nothing(moment()); // before nothing is open any more
        letGo?.();
        return { ...batch(step, brought), asked: asked() };
      }
    }
  };
}
