import type { Published } from '../../observe/hooks.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import { listedOffset } from '../../streams/records/records.ts';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';
import { completesScan, listOffsetOf } from '../reads/read-batch.ts';
import type { Task } from '../task.ts';
import type { Plan } from './plan.ts';

export interface ReportPublishedOptions {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  readonly checkpoint: Pick<Checkpoint, 'count'>;
}

/** Returns a function that calls the hooks after a plan has been carried out, and returns what was published. */
export function reportPublished({
  task,
  checkpoint,
}: ReportPublishedOptions): (plan: Plan) => Published {
  const { rules, hooks, scheduler } = task;

  return (plan) => {
    const { batch, changes, statusChanges, unchanged, rejected, notes } = plan;
    const offset = listOffsetOf(batch);
    for (const each of rejected) {
      hooks.onRejected({ reason: each.reason, offset: listedOffset(each, offset) });
    }
    if (batch.lane === 'first-read') {
      const { answer } = batch.page;
      const behind = offset + recordsOf(answer).length;
      const total = answer.pagination.total_records ?? behind;
      const read = Math.min(total, behind);
      hooks.onProgress({ read, total, done: batch.snapshot.done });
    }
    if (batch.lane === 'sweep' && batch.step.kind === 'end') {
      const { number, distinct: records, proof } = notes.sweep;
      hooks.onSwept({ number, records, proof, canBeAsked: rules.byKey !== undefined });
    }
    const published = {
      lane: batch.lane,
      changes,
      statusChanges,
      unchanged,
      known: checkpoint.count(),
      at: scheduler.now(),
      completes: completesScan(batch),
    };
    hooks.onPublished(published);
    return { resource: rules.resource, ...published };
  };
}
