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
   * Time from the first poll to the second, as a fraction of the poll interval in (0, 1]. Different fractions distribute the polls of an
   * account's lists over the interval. Default 1.
   */
  readonly phase?: number;
  /** Each value starts the next poll for new changes as soon as the quota allows. Default: none. */
  readonly pollNow$?: Observable<unknown> | undefined;
}

/** Returns the id of an account's list, `<account>/<resource>`. It is also the key of the message with the list's progress (cursor). */
export function taskId(account: string, resource: Resource): string {
  return `${account}/${resource}`;
}
