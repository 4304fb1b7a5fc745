import type { TaskResyncs } from '../account/resync-requests.ts';
import type { Committed, Published } from '../observe/hooks.ts';
import { isEpochError } from '../sinks/client/kafka-error.ts';
import { offsetOf } from '../streams/records/records.ts';
import type { Certifying } from './certify.ts';
import type { Checkpoint, TaskBatch } from './checkpoint/checkpoint.ts';
import type { Plan } from './publish/plan.ts';
import type { ResyncEvents } from './publish/resync-events.ts';
import { completes, offsetIn } from './reads/read-batch.ts';
import type { Task } from './task.ts';

export interface CommittingOptions {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  readonly checkpoint: Pick<Checkpoint, 'commit' | 'keep' | 'count'>;
  readonly resync: Pick<ResyncEvents, 'committed'> | undefined;
  /** What is to be committed beside a plan, as soon as that is. */
  readonly certify: (plan: Plan) => Promise<Certifying | undefined>;
  readonly resyncs?: Pick<TaskResyncs, 'acknowledged'> | undefined;
  /** Whether the task has ended meanwhile: from then on it begins to commit nothing. */
  readonly isOver: () => boolean;
}

/**
 * Does what a plan says, and tells of it. The transaction itself is the checkpoint's: cursor and messages
 * together, through `sinks/producer`.
 */
export function committing(options: CommittingOptions): (plan: Plan) => Promise<Published> {
  const { task, checkpoint, resync, certify, resyncs, isOver } = options;
  const { rules, hooks, scheduler } = task;
  const { resource } = rules;

  /** A commit of the checkpoint, and what is told of it. */
  const transact = async (batch: TaskBatch): Promise<void> => {
    const beganAt = scheduler.now();
    const ended = (outcome: Committed['outcome']) => {
      const elapsedMs = scheduler.now() - beganAt;
      hooks.onCommitted({ outcome, elapsedMs, messages: batch.messages.length });
    };
    hooks.onCommit({});
    try {
      await checkpoint.commit(batch);
    } catch (error) {
      ended(isEpochError(error) ? 'fenced' : 'failed');
      throw error;
    }
    ended('committed');
  };
  const certified = async (plan: Plan): Promise<void> => {
    const certifying = await certify(plan);
    if (!certifying || isOver()) return;
    const { outcome, commit, asked } = certifying;
    if (commit) await transact(commit);
    for (const each of asked) resyncs?.acknowledged(each);
    if (typeof outcome === 'string') hooks.onUncertified({ why: outcome });
    else hooks.onCertified({ certificate: outcome });
  };
  const tell = (plan: Plan): void => {
    const { batch, rejected, notes } = plan;
    const offset = offsetIn(batch);
    for (const each of rejected) {
      hooks.onRejected({ reason: each.reason, offset: offsetOf(each, offset) });
    }
    if (batch.lane === 'first-read') {
      const { data, pagination } = batch.page.answer;
      const total = pagination.total_records;
      const read = Math.min(total, offset + data.length);
      hooks.onProgress({ read, total, done: batch.snapshot.done });
    }
    if (batch.lane === 'sweep' && batch.step.kind === 'end') {
      const { number, distinct: records, proof } = notes.sweep;
      hooks.onSwept({ number, records, proof, canBeAsked: rules.byKey !== undefined });
    }
  };

  return async (plan) => {
    const { batch, changes, statusChanges, unchanged } = plan;
    if (plan.way === 'commit') await transact(plan.commit);
    if (plan.way === 'keep') await checkpoint.keep(plan.notes);
    await certified(plan);
    if (batch.lane === 'resync') resync?.committed(batch.step);
    tell(plan);
    const published = {
      lane: batch.lane,
      changes,
      statusChanges,
      unchanged,
      known: checkpoint.count(),
      at: scheduler.now(),
      completes: completes(batch),
    };
    hooks.onPublished(published);
    return { resource, ...published };
  };
}
