import type { Config, Resource } from '../config/config.ts';
import type { Destination } from '../sinks/topics/destination.ts';
import { taskId } from './task.ts';
import { transactionalId } from './transactional-id.ts';

/** A task's place in Kafka. */
export interface TaskPlace {
  /** `<account>/<resource>`: the key of its cursor. */
  readonly task: string;
  /** Of its events. */
  readonly topic: string;
  readonly cursorTopic: string;
  readonly transactionalId: string;
  /** Whether cursors of other accounts are in that topic, too. Default no: it is an error. */
  readonly isShared?: boolean;
}

/** The place of a resource of the account that is set. */
export function taskPlace(
  { account, topics, accountsDir }: Pick<Config, 'account' | 'topics' | 'accountsDir'>,
  resource: Resource,
  { records, cursors }: Pick<Destination, 'records' | 'cursors'>,
): TaskPlace {
  return {
    task: taskId(account, resource),
    topic: records(resource),
    cursorTopic: cursors,
    isShared: accountsDir !== undefined,
    transactionalId: transactionalId(topics.sharedPrefix, account, resource),
  };
}
