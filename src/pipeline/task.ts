import type { Observable, SchedulerLike } from 'rxjs';
import type { Account } from '../account/account.ts';
import type { Config, Resource } from '../config/config.ts';
import type { ListHooks } from '../observe/list-hooks.ts';
import type { ListDescription } from '../description/description.ts';
import type { Destination } from '../sinks/topics/destination.ts';

/** One list of one account: its settings and services, which stay the same while a process serves it. */
export interface Task {
  readonly account: Account;
  readonly list: ListDescription;
  readonly config: Config;
  readonly destination: Destination;
  readonly hooks: ListHooks;
  readonly scheduler: SchedulerLike;
  /** Returns the time for the timestamps of events, in epoch ms. May step back when the machine's clock is set. */
  readonly wallClock: () => number;
  /** The first value ends the task; pages already read are still committed. */
  readonly stop$: Observable<unknown>;
  /**
   * Time from the first poll to the second, as a fraction (above 0, at most 1) of the poll interval. Spreads the polls of an account's
   * lists over the interval. Default 1.
   */
  readonly phase?: number;
  /** Each value ends the pause before the next poll for new changes. A value during a running poll has no effect. Default: none. */
  readonly pollNow$?: Observable<unknown> | undefined;
}

/** Returns the id of an account's list, `<account>/<resource>`. It is also the key of the message with the list's progress (cursor). */
export function taskId(account: string, resource: Resource): string {
  return `${account}/${resource}`;
}

/** Names of one list of one account (a task) in Kafka: its topics, the key of its cursor, its transactional id. */
export interface TaskNames {
  /** Id of the task, `<account>/<resource>`. Also the key of the message that stores its progress (cursor). */
  readonly task: string;
  readonly topic: string;
  readonly cursorTopic: string;
  readonly transactionalId: string;
  /** Whether `cursorTopic` may contain other accounts' cursors. Default false: another account's cursor for the same list is an error. */
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
 * Returns the transactional id for one list of one account. It is unique, because two producers with the same id would fence each other. It
 * begins with `cellarstream.` and the prefix, so that ACLs can match it.
 */
export function transactionalId(prefix: string, account: string, resource: Resource): string {
  // With only dots, prefix `wine` with account `eu.main` would have the same id as prefix `wine.eu` with account `main`. Neither can
  // contain a `/`.
  return `${prefix}${account}`.includes('.')
    ? `cellarstream.${prefix}.${resource}/${account}`
    : `cellarstream.${prefix}.${account}.${resource}`;
}
