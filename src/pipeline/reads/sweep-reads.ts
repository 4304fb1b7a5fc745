import type { CertifyJob } from '../../account/signal-jobs.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import { isStale } from '../../streams/http/response-age.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import type { SweepStep } from '../../streams/paging/sweeps.ts';
import type { ReadResult, ReadLane, SweepBatch } from './read-batch.ts';

/**
 * Returns a function that converts the steps of a list's sweeps, such as a page that was read, to batches.
 *
 * @param certifyJobs Returns the certificate requests that the sweep fulfils. Called at the end of each sweep.
 * @param hold Keeps a page's read open on the list's logical clock until the returned function is called. Meanwhile, records that
 * overlapping reads have shown are not published as deleted. Undefined if records can be requested by key.
 */
export function sweepBatch(
  lane: Pick<ReadLane, 'splitAndTellClock' | 'noRecords'>,
  certifyJobs: () => readonly CertifyJob[],
  hold?: (span: Span) => () => void,
): (step: SweepStep) => SweepBatch {
  /**
   * Closes the read of the sweep's newest page, which `hold` has kept open. Undefined before the first page, and if `hold` is not given.
   */
  let endRead: (() => void) | undefined;
  const batch = (step: SweepStep, result: ReadResult): SweepBatch => ({
    lane: 'sweep',
    ...result,
    step,
    catchesUp: step.kind === 'end', // a complete sweep has read everything that the initial snapshot missed
  });

  return (step) => {
    switch (step.kind) {
      case 'page':
        endRead?.();
        // Remains open when the page is committed, because later steps of kind `absent` refer to the read.
        endRead = hold?.(step.page.answer.span);
        return batch(step, lane.splitAndTellClock(step.page.answer));
      case 'asked': {
        const { key, since, answer, again } = step;
        const read = batch(step, answer ? lane.splitAndTellClock(answer) : lane.noRecords());
        const isGone =
          answer &&
          !isStale(answer.age) &&
          recordsOf(answer).length === 0 &&
          // If the response has no total, an empty list suffices.
          (answer.total ?? 0) === 0;
        // After the first request an absent record stays missing, and is requested again. Any other result counts as seen.
        if (!again) return isGone ? read : { ...read, presumedSeen: [key] };
        return isGone ? { ...read, absent: { keys: [key], since } } : read;
      }
      case 'absent': {
        const { keys, since, span } = step;
        return { ...batch(step, lane.noRecords(span)), absent: { keys, since } };
      }
      case 'spared':
        return { ...batch(step, lane.noRecords()), presumedSeen: step.keys };
      case 'asked-once':
      case 'judged':
      case 'polled':
        return batch(step, lane.noRecords());
      case 'end': {
        const result = lane.noRecords(); // its span begins before the hold ends, so that the clock forgets nothing in between
        endRead?.();
        return { ...batch(step, result), certifyJobs: certifyJobs() };
      }
    }
  };
}
