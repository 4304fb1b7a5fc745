import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { TransactionalLog } from '../../sinks/transactional-log.ts';
import { parseCursor } from './cursor.ts';
import { newestCursors } from './ownership.ts';

/** A process that runs an account. */
export interface LivingInstance {
  readonly instance: string;
  /** When it took the account over, ms since 1970 by its own clock; undefined of an older version. */
  readonly since: number | undefined;
}

export interface LivingInstanceOptions {
  readonly log: TransactionalLog;
  readonly cursorTopic: string;
  readonly account: string;
  readonly scheduler: SchedulerLike;
}

/** A little longer than a process lets pass without a cursor while the API answers it. */
const WATCHED_MS = 12_000;
const LOOK_EVERY_MS = 500;

/**
 * Who runs the account, found out by watching its cursors: who is alive writes one within ten seconds, and who isn't
 * writes none. One that has no answers from its API to commit, polls more rarely, or stands still, is not seen.
 */
export async function livingInstance(
  options: LivingInstanceOptions,
): Promise<LivingInstance | undefined> {
  const { log, cursorTopic, account, scheduler } = options;
  const endOf = async () => (await log.bounds(cursorTopic)).get(0)?.high ?? 0n;
  const begin = await endOf();
  const until = scheduler.now() + WATCHED_MS;
  for (;;) {
    if ((await endOf()) > begin) {
      const written = await newestCursors(log, cursorTopic, begin);
      for (const [task, text] of written) {
        if (!task.startsWith(`${account}/`)) continue;
        const { instance, heldSince } = parseCursor(text, task);
        return { instance, since: heldSince };
      }
    }
    if (scheduler.now() >= until) return undefined;
    await lastValueFrom(timer(LOOK_EVERY_MS, scheduler));
  }
}
