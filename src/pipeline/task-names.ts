import type { Config, Resource } from '../config/config.ts';
import type { Destination } from '../sinks/topics/destination.ts';
import { taskId } from './task.ts';
import { transactionalId } from './transactional-id.ts';

/** Names of a task in Kafka: its topics, its cursor's key, its transactional id. */
export interface TaskNames {
  /** Id of the task and key of its cursor: `<account>/<resource>`. */
  readonly task: string;
  readonly topic: string;
  readonly cursorTopic: string;
  readonly transactionalId: string;
  /** Whether other accounts may have cursors in `cursorTopic`. Default false: such a cursor is an error. */
  readonly isShared?: boolean;
}

export function taskNames(
  { account, topics, accountsDir }: Pick<Config, 'account' | 'topics' | 'accountsDir'>,
  resource: Resource,
  { records, cursors }: Pick<Destination, 'records' | 'cursors'>,
): TaskNames {
  return {
    task: taskId(account, resource),
    topic: records(resource),
    cursorTopic: cursors,
    isShared: accountsDir !== undefined,
    transactionalId: transactionalId(topics.sharedPrefix, account, resource),
  };
}
