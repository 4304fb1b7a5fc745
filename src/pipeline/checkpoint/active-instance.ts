import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { parseLedger } from '../../account/ledger/ledger-record.ts';
import type { TransactionalLog } from '../../sinks/sink.ts';
import { parseCursor } from './cursor.ts';
import { newestCursors } from './task-claim.ts';

export interface ActiveInstance {
  readonly instance: string;
  /**
   * When the instance became the owner of the account's lists, in epoch ms by its own clock. Undefined if it has not committed a cursor
   * yet.
   */
  readonly since: number | undefined;
}

export interface ActiveInstanceOptions {
  readonly log: TransactionalLog;
  readonly ledgerTopic: string;
  readonly cursorTopic: string;
  readonly account: string;
  readonly scheduler: SchedulerLike;
}

/** How long the ledger (topic of declared requests) is observed, in ms. Longer than a lease: some instances declare once per lease. */
const OBSERVATION_MS = 12_000;
const CHECK_EVERY_MS = 500;

/**
 * Detects the instance that serves an account, by observing the account's ledger for {@link OBSERVATION_MS}. An instance that declares no
 * requests in that time, for example because its process is suspended, is not detected.
 */
export async function findActiveInstance(
  options: ActiveInstanceOptions,
): Promise<ActiveInstance | undefined> {
  const { log, ledgerTopic, scheduler } = options;
  const endOf = async () => (await log.bounds(ledgerTopic)).get(0)?.high ?? 0n;
  let seen = await endOf();
  const until = scheduler.now() + OBSERVATION_MS;
  for (;;) {
    const end = await endOf();
    const instance = await declaringInstance(options, seen, end);
    if (instance !== undefined) return { instance, since: await claimedSince(options, instance) };
    seen = end;
    if (scheduler.now() >= until) return undefined;
    await lastValueFrom(timer(CHECK_EVERY_MS, scheduler));
  }
}

/**
 * Returns the instance that wrote the account's newest declaration between two offsets of the ledger. Undefined without a declaration, or
 * if the newest one ends the lease (right to send requests).
 */
async function declaringInstance(
  { log, ledgerTopic, account }: ActiveInstanceOptions,
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
        if (key?.toString() !== account) continue; // an entry of another account or of a guest, or a claim
        const entry = parseLedger(String(value));
        if (entry && 'quotas' in entry) instance = entry.blockMs > 0 ? entry.instance : undefined;
      }
      return Promise.resolve();
    },
  });
  return instance;
}

async function claimedSince(
  { log, cursorTopic, account }: ActiveInstanceOptions,
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
