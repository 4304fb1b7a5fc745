import type { Observable, SchedulerLike } from 'rxjs';
import type { Account } from '../account/account.ts';
import type { Config, Resource } from '../config/config.ts';
import type { ListHooks } from '../observe/list-hooks.ts';
import type { ResourceRules } from '../resources/resources.ts';
import type { Destination } from '../sinks/topics/destination.ts';

/** One list of one account, kept up to date in its topic: what stays the same while a process does that. */
export interface Task {
  readonly account: Account;
  readonly rules: ResourceRules;
  readonly config: Config;
  readonly destination: Destination;
  readonly hooks: ListHooks;
  readonly scheduler: SchedulerLike;
  /** The time that events are stamped with, ms since the epoch: it may step back. */
  readonly wallClock: () => number;
  /** Its first value ends the task; what was read is still committed. */
  readonly stop$: Observable<unknown>;
  /**
   * Of its poll interval, (0, 1]: so long after the first poll the second one begins, so that the lists of an account don't
   * ask all at once. Default 1.
   */
  readonly phase?: number;
  /** Each of its values has the next poll for what is new begin at once, as far as the quota lets. Default none. */
  readonly pollNow$?: Observable<unknown> | undefined;
}

/** What its cursor is known by: `<account>/<resource>`. */
export function taskId(account: string, resource: Resource): string {
  return `${account}/${resource}`;
}
