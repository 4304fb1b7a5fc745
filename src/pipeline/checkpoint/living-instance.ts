import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { parseLedger } from '../../account/ledger/ledger-record.ts';
import type { TransactionalLog } from '../../sinks/sink.ts';
import { parseCursor } from './cursor.ts';
import { newestCursors } from './ownership.ts';

/** A process that runs an account. */
export interface LivingInstance {
  readonly instance: string;
  /** When it took the account over, ms since 1970 by its own clock; undefined of an older version, or of one that has just begun. */
  readonly since: number | undefined;
}

export interface LivingInstanceOptions {
  readonly log: TransactionalLog;
  readonly ledgerTopic: string;
  readonly cursorTopic: string;
  readonly account: string;
  readonly scheduler: SchedulerLike;
}

/** A little longer than a declaration lasts. */
const WATCHED_MS = 12_000;
const LOOK_EVERY_MS = 500;

/**
 * Who runs the account, found out by watching its ledger: who asks its API declares that every ten seconds, and who is no
 * more declares nothing. One that polls more rarely, or stands still, is not seen.
 */
export async function livingInstance(
  options: LivingInstanceOptions,
): Promise<LivingInstance | undefined> {
  const { log, ledgerTopic, scheduler } = options;
  const endOf = async () => (await log.bounds(ledgerTopic)).get(0)?.high ?? 0n;
  let seen = await endOf();
  const until = scheduler.now() + WATCHED_MS;
  for (;;) {
    const end = await endOf();
    const instance = await declaredIn(options, seen, end);
    if (instance !== undefined) return { instance, since: await heldSince(options, instance) };
    seen = end;
    if (scheduler.now() >= until) return undefined;
    await lastValueFrom(timer(LOOK_EVERY_MS, scheduler));
  }
}

/** Who has declared, between two offsets, that it goes on asking. */
async function declaredIn(
  { log, ledgerTopic, account }: LivingInstanceOptions,
  from: bigint,
  to: bigint,
): Promise<string | undefined> {
  let instance: string | undefined;
  await log.readTail({
    topic: ledgerTopic,
    from: new Map([[0, from < to ? from : to]]),
    to: new Map([[0, to]]),
    onMessages: (messages) => {
      for (const { key, value } of messages) {
        if (key?.toString() !== account) continue; // another account's, a claim, or of a guest
        const entry = parseLedger(String(value));
        if (entry && 'quotas' in entry) instance = entry.blockMs > 0 ? entry.instance : undefined;
      }
      return Promise.resolve();
    },
  });
  return instance;
}

async function heldSince(
  { log, cursorTopic, account }: LivingInstanceOptions,
  instance: string,
): Promise<number | undefined> {
  const { newest } = await newestCursors(log, cursorTopic);
  for (const [task, { value }] of newest) {
    if (!task.startsWith(`${account}/`)) continue;
    const cursor = parseCursor(value.toString(), task);
    if (cursor.instance === instance) return cursor.heldSince;
  }
  return undefined;
}
