import { ignoreElements, map, merge, NEVER, switchMap, take, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Lanes } from '../../account/quotas.ts';
import type { CertifyJob } from '../../account/signal-jobs.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import { isStale } from '../../streams/http/response-age.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import { sweeps } from '../../streams/paging/sweeps.ts';
import type { KnownRecords } from '../../streams/paging/missing-keys.ts';
import type { SweepsOptions, SweepStep } from '../../streams/paging/sweeps.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import type { Task } from '../task.ts';
import type { CertificateRequests } from './certificate-requests.ts';
import type { ReadResult, ReadLane, SweepBatch } from './read-batch.ts';
import { retryRefusedLane } from './retry-refused-lane.ts';
import type { SingleRecords } from './single-records.ts';
import type { SnapshotReads } from './snapshot-reads.ts';

export interface SweepReadsOptions {
  readonly task: Pick<Task, 'rules' | 'config' | 'hooks' | 'scheduler'>;
  readonly lane: ReadLane;
  readonly lanes: Pick<Lanes, 'singleRecords' | 'requestIntervalMs'>;
  /** The published records, and the current progress of sweeps. */
  readonly checkpoint: KnownRecords & { readonly sweep: SweepProgress };
  readonly single: SingleRecords;
  /** Whether polls read new changes. Sweeps are rare then. */
  readonly isPolled: () => boolean;
  /** Emits when polls are given up. */
  readonly unpolled$: Observable<unknown>;
  /** Emits when the initial snapshot is done, so that the first sweep may begin. */
  readonly snapshotDone$: SnapshotReads['done$'];
  /** Returns a span of the list's logical clock, for a step without a read. */
  readonly emptySpan: () => Span;
  /** Makes the logical clock remember reads that overlap `span`, until the returned function is called. */
  readonly hold: (span: Span) => () => void;
  /** Returns the keys of records published as new since a local time, in ms. Default none. */
  readonly createdSince?: SweepsOptions['createdSince'];
  /** Requests for certificates that have arrived and are not answered yet. */
  readonly certificates: CertificateRequests;
  /** New requests for certificates. Default none. */
  readonly certifications$?: Observable<CertifyJob> | undefined;
  /** Emits once polls that began after the subscription have read every change; undefined if the list is not polled. */
  readonly pollsCompleted$?: Observable<unknown> | undefined;
}

/** Sweeps the list again and again: at long intervals while polls work, else one sweep after another. */
export function sweepReads(options: SweepReadsOptions): Observable<SweepBatch> {
  const { task, lane, lanes, checkpoint, single, snapshotDone$, emptySpan, hold, certificates } =
    options;
  const { certifications$ = NEVER, pollsCompleted$, createdSince } = options;
  const { config, hooks, scheduler } = task;
  const { byKey } = task.rules;
  const { isPolled, unpolled$ } = options;
  const { intervalMs, sweepIntervalMs, deleteLimitPercent, deleteProofMs } = config.poll;
  const asking$ = certifications$.pipe(tap(certificates.add), ignoreElements());
  const swept$ = snapshotDone$.pipe(
    take(1),
    switchMap(() =>
      sweeps({
        progress: () => checkpoint.sweep,
        scan: (position, onTrouble) => {
          if (position === null) certificates.scanStarted();
          return lane.scan({}, { from: position, onTrouble });
        },
        pageSlots: lane.pageSlots,
        records: checkpoint,
        createdSince,
        ...(byKey && {
          single: { ...single, request: (key) => single.request(key, lanes.singleRecords) },
        }),
        ...(pollsCompleted$ && { pollsCompleted$ }),
        emptySpan,
        pace: {
          get intervalMs() {
            return isPolled() ? sweepIntervalMs : (intervalMs ?? 0);
          },
          spacingMs: () => (isPolled() ? 0 : lanes.requestIntervalMs),
          startNow$: merge(certificates.startNow$, unpolled$),
        },
        deletions: {
          proofMs: deleteProofMs,
          limitPercent: deleteLimitPercent,
          onHeld: (held) => hooks.onHeld({ ...held, limitPercent: deleteLimitPercent }),
          onCut: (total) => hooks.onTrouble({ trouble: 'cut', offset: total }),
        },
        scheduler,
      }).pipe(
        retryRefusedLane({
          task,
          hasOtherLanes: isPolled,
          onRefused: () => lane.pageSlots.release(), // acquired for the refused request
        }),
      ),
    ),
    map(
      sweepBatch({
        emptySpan,
        lane,
        // Where records can be requested by key, absence is judged by the span of that request's response instead.
        hold: byKey ? undefined : hold,
        certifyJobs: certificates.scanEnded,
      }),
    ),
  );
  return merge(asking$, swept$);
}

interface SweepBatchOptions {
  readonly emptySpan: () => Span;
  readonly lane: Pick<ReadLane, 'splitAndTellClock' | 'settler'>;
  /**
   * Makes the logical clock remember overlapping reads: see {@link SweepReadsOptions.hold}. Not needed if records can be requested by key.
   */
  readonly hold?: SweepReadsOptions['hold'] | undefined;
  /** Returns the requests for certificates that the sweep which has just ended answers. */
  readonly certifyJobs: () => readonly CertifyJob[];
}

/** Returns the function that turns each step of a sweep into a batch. */
export function sweepBatch(options: SweepBatchOptions): (step: SweepStep) => SweepBatch {
  const { emptySpan, lane, hold, certifyJobs } = options;
  /**
   * Ends the hold on the span of the newest page. The step `absent` has that span, although the page is settled before; while the span is
   * held, reads that overlap it are remembered and taken into account.
   */
  let letGo: (() => void) | undefined;
  const nothing = (span: Span): ReadResult => ({
    keyed: [],
    runs: [],
    rejected: [],
    rejectedAt: [],
    span,
    settle: lane.settler(span),
  });
  const batch = (step: SweepStep, result: ReadResult): SweepBatch => ({
    lane: 'sweep',
    ...result,
    step,
    catchesUp: step.kind === 'end', // a complete sweep has read everything that the initial snapshot missed
  });

  return (step) => {
    switch (step.kind) {
      case 'page':
        letGo?.();
        letGo = hold?.(step.page.answer.span);
        return batch(step, lane.splitAndTellClock(step.page.answer));
      case 'asked': {
        const { key, since, answer, again } = step;
        const read = batch(step, answer ? lane.splitAndTellClock(answer) : nothing(emptySpan()));
        const isGone =
          answer &&
          !isStale(answer.age) &&
          recordsOf(answer).length === 0 &&
          // If the response has no total, an empty list suffices.
          (answer.pagination.total_records ?? 0) === 0;
        // After the first request an absent record stays missing, and is requested again. Any other result counts as seen.
        if (!again) return isGone ? read : { ...read, presumedSeen: [key] };
        return isGone ? { ...read, absent: { keys: [key], since } } : read;
      }
      case 'absent': {
        const { keys, since, span } = step;
        return { ...batch(step, nothing(span)), absent: { keys, since } };
      }
      case 'spared':
        return { ...batch(step, nothing(emptySpan())), presumedSeen: step.keys };
      case 'asked-once':
      case 'judged':
      case 'polled':
        return batch(step, nothing(emptySpan()));
      case 'end': {
        const result = nothing(emptySpan()); // its span begins before the hold ends, so that the clock forgets nothing in between
        letGo?.();
        return { ...batch(step, result), certifyJobs: certifyJobs() };
      }
    }
  };
}
