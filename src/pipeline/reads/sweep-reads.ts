import { ignoreElements, map, merge, NEVER, switchMap, take, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Lanes } from '../../account/quotas.ts';
import type { CertifyAsked } from '../../account/resync-requests.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import { isStale } from '../../streams/http/answer-age.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import { sweeps } from '../../streams/paging/sweeps.ts';
import type { KnownRecords } from '../../streams/paging/missing-keys.ts';
import type { SweepsOptions, SweepStep } from '../../streams/paging/sweeps.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import type { Task } from '../task.ts';
import type { AskedReadings } from './certify-asked.ts';
import type { Brought, ReadLane, SweepBatch } from './read-batch.ts';
import { refusedLane } from './refused-lane.ts';
import type { SingleRecords } from './single-records.ts';
import type { SnapshotReads } from './snapshot-reads.ts';

export interface SweepReadsOptions {
  readonly task: Pick<Task, 'rules' | 'config' | 'hooks' | 'scheduler'>;
  readonly lane: ReadLane;
  readonly lanes: Pick<Lanes, 'ask' | 'paceMs'>;
  /** What is published, and how far sweeps have come by now. */
  readonly checkpoint: KnownRecords & { readonly sweep: SweepProgress };
  readonly single: SingleRecords;
  /** Whether polls read what is new: then sweeps are rare. */
  readonly isPolled: () => boolean;
  /** Emits when polls are given up. */
  readonly unpolled$: Observable<unknown>;
  /** When the first sweep may begin. */
  readonly done$: SnapshotReads['done$'];
  /** When there was nothing to read. */
  readonly moment: () => Span;
  /** Keeps what was seen beside a read from being forgotten, until what it gives is called. */
  readonly hold: (span: Span) => () => void;
  /** Keys of records that were published as new since a local time, in ms. Default none. */
  readonly createdSince?: SweepsOptions['createdSince'];
  /** Those that somebody has asked for. */
  readonly asked: AskedReadings;
  /** Requests for certificates. Default none. */
  readonly certify$?: Observable<CertifyAsked> | undefined;
  /** Emits once polls that began after the subscription have looked at all that has changed; undefined where there are no polls. */
  readonly polled$?: Observable<unknown> | undefined;
}

/** Reads the whole list, again and again: rarely beside polls, one after the other where there are none. */
export function sweepReads(options: SweepReadsOptions): Observable<SweepBatch> {
  const { task, lane, lanes, checkpoint, single, done$, moment, hold, asked } = options;
  const { certify$ = NEVER, polled$, createdSince } = options;
  const { config, hooks, scheduler } = task;
  const { byKey } = task.rules;
  const { isPolled, unpolled$ } = options;
  const { intervalMs, sweepIntervalMs, deleteLimitPercent, deleteProofMs } = config.poll;
  const asking$ = certify$.pipe(tap(asked.ask), ignoreElements());
  const swept$ = done$.pipe(
    take(1),
    switchMap(() =>
      sweeps({
        progress: () => checkpoint.sweep,
        scan: (position, onTrouble) => {
          if (position === null) asked.begin();
          return lane.scan({}, { from: position, onTrouble });
        },
        permits: lane.permits,
        records: checkpoint,
        createdSince,
        ...(byKey && { single: { ...single, ask: (key) => single.ask(key, lanes.ask) } }),
        ...(polled$ && { polled$ }),
        moment,
        pace: {
          get intervalMs() {
            return isPolled() ? sweepIntervalMs : (intervalMs ?? 0);
          },
          spacingMs: () => (isPolled() ? 0 : lanes.paceMs),
          hurry$: merge(asked.hurry$, unpolled$),
        },
        deletions: {
          proofMs: deleteProofMs,
          limitPercent: deleteLimitPercent,
          onHeld: (held) => hooks.onHeld({ ...held, limitPercent: deleteLimitPercent }),
          onCut: (total) => hooks.onTrouble({ trouble: 'cut', offset: total }),
        },
        scheduler,
      }).pipe(
        refusedLane({
          task,
          goesAlone: isPolled,
          onRefused: () => lane.permits.release(), // the request that failed had taken it
        }),
      ),
    ),
    map(
      sweepBatch({
        moment,
        lane,
        // Where single records are asked for, each is judged by the time of its own answer.
        hold: byKey ? undefined : hold,
        asked: asked.end,
      }),
    ),
  );
  return merge(asking$, swept$);
}

interface SweepBatchOptions {
  readonly moment: () => Span;
  readonly lane: Pick<ReadLane, 'seen' | 'settling'>;
  /** See {@link SweepReadsOptions.hold}. Left out where that is not needed. */
  readonly hold?: SweepReadsOptions['hold'] | undefined;
  /** The requests for certificates that a reading that has ended answers. */
  readonly asked: () => readonly CertifyAsked[];
}

/** What a step of a sweep brought. */
export function sweepBatch(options: SweepBatchOptions): (step: SweepStep) => SweepBatch {
  const { moment, lane, hold, asked } = options;
  /**
   * Ends the hold on the newest page. The step `absent` is judged by that page's span, though the page is settled before; as long as it is
   * held, what was read beside it is not forgotten, and counts.
   */
  let letGo: (() => void) | undefined;
  const nothing = (span: Span): Brought => ({
    keyed: [],
    runs: [],
    rejected: [],
    rejectedAt: [],
    span,
    settle: lane.settling(span),
  });
  const batch = (step: SweepStep, brought: Brought): SweepBatch => ({
    lane: 'sweep',
    ...brought,
    step,
    catchesUp: step.kind === 'end', // all that the initial snapshot has missed has turned up by then
  });

  return (step) => {
    switch (step.kind) {
      case 'page':
        letGo?.();
        letGo = hold?.(step.page.answer.span);
        return batch(step, lane.seen(step.page.answer));
      case 'asked': {
        const { key, since, answer, again } = step;
        const read = batch(step, answer ? lane.seen(answer) : nothing(moment()));
        const isGone =
          answer &&
          !isStale(answer.age) &&
          recordsOf(answer).length === 0 &&
          // Where the API tells no total, an empty list is all that it can say.
          (answer.pagination.total_records ?? 0) === 0;
        // Gone for the first time it stays missing, and is asked for again. What can't be told is not.
        if (!again) return isGone ? read : { ...read, spared: [key] };
        return isGone ? { ...read, gone: { keys: [key], since } } : read;
      }
      case 'absent': {
        const { keys, since, span } = step;
        return { ...batch(step, nothing(span)), gone: { keys, since } };
      }
      case 'spared':
        return { ...batch(step, nothing(moment())), spared: step.keys };
      case 'asked-once':
      case 'judged':
      case 'polled':
        return batch(step, nothing(moment()));
      case 'end': {
        const brought = nothing(moment()); // before nothing is open any more
        letGo?.();
        return { ...batch(step, brought), asked: asked() };
      }
    }
  };
}
