import type { Committed } from '../observe/hooks.ts';
import { isEpochError } from '../sinks/client/kafka-error.ts';
import type { Checkpoint, TaskBatch } from './checkpoint/checkpoint.ts';
import type { Task } from './task.ts';

export interface TransactionOptions {
  readonly task: Pick<Task, 'hooks' | 'scheduler'>;
  readonly checkpoint: Pick<Checkpoint, 'commit'>;
}

/** A commit of the checkpoint, and what is told of it. */
export function transaction(options: TransactionOptions): (batch: TaskBatch) => Promise<void> {
  const { task, checkpoint } = options;
  const { hooks, scheduler } = task;
  return async (batch) => {
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
}
