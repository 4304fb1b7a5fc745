import type { Config, Resource } from '../config/config.ts';
import type { Destination } from '../sinks/topics/destination.ts';
import { taskId } from './task.ts';

/** Names of one list of one account (a task) in Kafka: its topics, the key of its cursor, its transactional id. */
export interface TaskNames {
  /** Id of the task, `<account>/<resource>`. Also the key of the message that stores its progress (cursor). */
  readonly task: string;
  readonly topic: string;
  readonly cursorTopic: string;
  readonly transactionalId: string;
  /** Whether `cursorTopic` may contain cursors of other accounts. Default false: a cursor of another account is an error. */
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

/**
 * Returns the transactional id for one list of one account. It must be unique: two producers with the same id would fence each other again
 * and again. If the prefix or the account contains a dot, the account stands at the end, after a `/`, which neither can contain. Otherwise
 * prefix `wine` with account `eu.main` would have the same id as prefix `wine.eu` with account `main`.
 *
 * Every id begins with `cellarstream.` and the prefix, so that ACLs can match it.
 */
export function transactionalId(prefix: string, account: string, resource: Resource): string {
  return `${prefix}${account}`.includes('.')
    ? `cellarstream.${prefix}.${resource}/${account}`
    : `cellarstream.${prefix}.${account}.${resource}`;
}
