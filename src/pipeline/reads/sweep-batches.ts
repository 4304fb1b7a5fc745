import type { ReadBatch } from './read-batch.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import type { Answer } from '../../streams/http/request.ts';
import type { SweepStep } from '../../streams/paging/sweeps.ts';

export interface SweepBatchesOptions {
  /** When there was nothing to read. */
  readonly moment: () => Span;
  /** An answer that was read, as a reading. */
  readonly arrived: (answer: Answer) => ReadBatch;
  /** What settles a reading that has no answer. */
  readonly settling: (span: Span) => () => void;
}

/** Steps of a sweep as readings. */
export function sweepBatch(options: SweepBatchesOptions): (step: SweepStep) => ReadBatch {
  const { moment, arrived, settling } = options;
  const empty = (step: SweepStep, span: Span): ReadBatch => ({
    lane: 'sweep',
    progress: {},
    step,
    records: [],
    rejected: [],
    span,
    settle: settling(span),
  });

  return (step) => {
    switch (step.kind) {
      case 'page':
        return { ...arrived(step.page.answer), page: step.page, step };
      case 'asked': {
        const { key, since, answer, again } = step;
        const read = answer ? { ...arrived(answer), step } : empty(step, moment());
        const isGone = answer?.data.length === 0 && answer.pagination.total_records === 0;
        // Gone for the first time it stays missing, and is asked for again. What can't be told is not.
        if (!again) return isGone ? read : { ...read, spared: [key] };
        return isGone ? { ...read, gone: { keys: [key], since } } : read;
      }
      case 'absent': {
        const { keys, since, span } = step;
        return { ...empty(step, span), gone: { keys, since } };
      }
      case 'asked-once':
      case 'end':
        return empty(step, moment());
    }
  };
}
