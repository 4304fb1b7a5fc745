import type { Published } from '../../observe/hooks.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import { offsetOf } from '../../streams/records/records.ts';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';
import { completes, offsetIn } from '../reads/read-batch.ts';
import type { Task } from '../task.ts';
import type { Plan } from './plan.ts';

export interface TellingOptions {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  readonly checkpoint: Pick<Checkpoint, 'count'>;
}

/** Tells the hooks what a plan has come to once it is done, and gives what was published. */
export function telling({ task, checkpoint }: TellingOptions): (plan: Plan) => Published {
  const { rules, hooks, scheduler } = task;

  return (plan) => {
    const { batch, changes, statusChanges, unchanged, rejected, notes } = plan;
    const offset = offsetIn(batch);
    for (const each of rejected) {
      hooks.onRejected({ reason: each.reason, offset: offsetOf(each, offset) });
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
      completes: completes(batch),
    };
    hooks.onPublished(published);
    return { resource: rules.resource, ...published };
  };
}
