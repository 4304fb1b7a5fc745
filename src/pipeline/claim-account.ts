import type { SchedulerLike } from 'rxjs';
import type { InheritedLedger, Ledger } from '../account/ledger/ledger.ts';
import { isOfApiKey, parseLedger, WINDOW_MS } from '../account/ledger/ledger-record.ts';
import type { Quotas } from '../account/quotas.ts';
import type { ConfigWith } from '../config/config.ts';
import { keyDigest } from '../config/key-digest.ts';
import { CellarstreamError } from '../core/errors.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { KafkaClients } from '../sinks/open-kafka.ts';
import { kafkaTransactionalLog } from '../sinks/open-kafka.ts';
import { accountLog } from '../sinks/ledger/kafka-ledger.ts';
import { openDestination, topicsOf } from '../sinks/topics/destination.ts';
import type { Destination } from '../sinks/topics/destination.ts';
import { openTopics } from '../sinks/topics/kafka-topics.ts';
import type { TransactionalLog } from '../sinks/sink.ts';
import { parseCursor } from './checkpoint/cursor.ts';
import { newestCursors } from './checkpoint/task-claim.ts';
import { taskId } from './task.ts';

/** The topics of an account that this process has claimed, and the Kafka client that reads them and opens transactional producers. */
export interface ClaimedAccount {
  readonly destination: Destination;
  readonly log: TransactionalLog;
}

export interface ClaimAccountOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly clients: KafkaClients;
  readonly instance: string;
  readonly ledger: Ledger;
  readonly quotas: Quotas;
  readonly scheduler: SchedulerLike;
  readonly hooks: Pick<Hooks, 'onTakenOver'>;
  /** Returns whether the service has been stopped. If so, the claim ends with `COMMIT_FAILED`. */
  readonly hasEnded: () => boolean;
}

/**
 * A cursor counts as written by the previous process if it was written at most this long after the newest request of that process, in ms.
 * If it is too small, a late commit by that process makes all lists wait a minute. If it is too large, a commit by an unknown process may
 * go unnoticed.
 */
const CURSOR_DELAY_MS = 10_000;

/**
 * Claims an account: creates its topics, claims its ledger (the topic of declared requests), and counts the requests of earlier processes
 * against the quotas. Requests may be sent once the returned promise is fulfilled.
 *
 * @throws CellarstreamError `COMMIT_FAILED` if the service was stopped while the claim was running; errors of Kafka.
 */
export async function claimAccount(options: ClaimAccountOptions): Promise<ClaimedAccount> {
  const { config, clients, instance, ledger, quotas, scheduler, hooks } = options;
  const { account, topics, resources } = config;
  const key = keyDigest(config.api);
  const destination = await openDestination(config, clients);
  const log = kafkaTransactionalLog(clients, destination);
  if (options.hasEnded()) throw serviceEndedError(); // a claim would fence the next owner of the account
  const inherited = await ledger.claim(
    accountLog({
      ...{ log, account, scheduler },
      topic: destination.ledger,
      ledgerTopic: clients.compactedTopics(destination.ledger, 'uncommitted'),
      transactionalId: `cellarstream.${topics.sharedPrefix}.ledger/${account}`,
      recreateTopic: () => openTopics(topicsOf(config, clients)),
      isOwnEntry: (text) => parseLedger(text)?.instance === instance,
      isOfApiKey: (text) => isOfApiKey(text, key),
    }),
  );
  const claimed = { destination, log };
  const areStrangers = await hasUndeclaredWriters(options, claimed, inherited);
  if (options.hasEnded()) throw serviceEndedError();
  const isBeside = quotas.inherit(inherited);
  if (areStrangers) quotas.waitFullWindow();
  if (isBeside || areStrangers) {
    for (const resource of resources) hooks.onTakenOver?.({ resource });
  }
  ledger.activate(inherited);
  return claimed;
}

function serviceEndedError(): CellarstreamError {
  return new CellarstreamError(
    'COMMIT_FAILED',
    'the service was stopped before it could begin to serve the account',
  );
}

/**
 * Whether a cursor of the account was written in the last minute by an instance whose requests are neither in the ledger nor in the state
 * folder. Possible, for example, after the ledger's topic was deleted.
 */
async function hasUndeclaredWriters(
  { config, quotas, scheduler }: ClaimAccountOptions,
  { log, destination }: ClaimedAccount,
  { sent }: InheritedLedger,
): Promise<boolean> {
  const now = scheduler.now();
  const knownUntil = sent ? 0 : quotas.lastRequestAt() + CURSOR_DELAY_MS;
  const since = Math.max(knownUntil, now - WINDOW_MS);
  if (since >= now) return false;
  const { newest } = await newestCursors(log, destination.cursors);
  return config.description.lists.some((list) => {
    const task = taskId(config.account, list.name);
    const cursor = newest.get(task);
    if (!cursor || Number(cursor.timestamp) < since) return false;
    return !sent?.declaration.writers.includes(parseCursor(cursor.value.toString(), task).instance);
  });
}
