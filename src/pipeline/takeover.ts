import type { SchedulerLike } from 'rxjs';
import type { Inheritance, Ledger } from '../account/ledger/ledger.ts';
import { isOfKey, parseLedger } from '../account/ledger/ledger-record.ts';
import { WINDOW_MS } from '../account/quota.ts';
import type { Quotas } from '../account/quotas.ts';
import type { ConfigWith } from '../config/config.ts';
import { keyDigest } from '../config/key-digest.ts';
import { CellarstreamError } from '../core/errors.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { Links } from '../sinks/client/open-kafka.ts';
import { kafkaTransactionalLog } from '../sinks/client/open-kafka.ts';
import { accountLog } from '../sinks/ledger/kafka-ledger.ts';
import { openDestination, topicsOf } from '../sinks/topics/destination.ts';
import type { Destination } from '../sinks/topics/destination.ts';
import { openTopics } from '../sinks/topics/kafka-topics.ts';
import type { TransactionalLog } from '../sinks/sink.ts';
import { parseCursor } from './checkpoint/cursor.ts';
import { RESOURCES } from '../resources/resources.ts';
import { newestCursors } from './checkpoint/ownership.ts';
import { taskId } from './task.ts';

/** Where an account's events go, once it is this process's. */
export interface TakenOver {
  readonly destination: Destination;
  readonly log: TransactionalLog;
}

export interface TakeoverOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly links: Links;
  /** Names this process. */
  readonly instance: string;
  readonly ledger: Ledger;
  readonly quotas: Quotas;
  readonly scheduler: SchedulerLike;
  readonly hooks: Pick<Hooks, 'onTakenOver'>;
  /** Whether the service has ended meanwhile. */
  readonly isOver: () => boolean;
}

/** A cursor is written so long after the newest answer, at most, unless Kafka is slow. */
const IN_HAND_MS = 10_000;

/**
 * Takes an account over from whoever served it: makes its topics, claims its ledger, and counts what its
 * predecessors may have asked. From then on requests may be sent.
 *
 * @throws CellarstreamError `COMMIT_FAILED` when the service has ended meanwhile; what Kafka refuses.
 */
export async function takeOver(options: TakeoverOptions): Promise<TakenOver> {
  const { config, links, instance, ledger, quotas, scheduler, hooks } = options;
  const { account, topics, resources } = config;
  const key = keyDigest(config.api);
  const destination = await openDestination(config, links);
  const log = kafkaTransactionalLog(links, destination);
  if (options.isOver()) throw ended(); // its claim would fence whoever has the account by now
  const inherited = await ledger.claim(
    accountLog({
      ...{ log, account, scheduler },
      topic: destination.ledger,
      known: links.newest(destination.ledger, 'uncommitted'),
      transactionalId: `cellarstream.${topics.sharedPrefix}.ledger/${account}`,
      remake: () => openTopics(topicsOf(config, links)),
      isMine: (text) => parseLedger(text)?.instance === instance,
      isOfKey: (text) => isOfKey(text, key),
    }),
  );
  const areStrangers = await hasStrangers({
    ...{ config, log, quotas, inherited },
    cursors: destination.cursors,
    now: scheduler.now(),
  });
  if (options.isOver()) throw ended();
  const isBeside = quotas.inherit(inherited);
  if (areStrangers) quotas.distrust();
  if (isBeside || areStrangers) {
    for (const resource of resources) hooks.onTakenOver?.({ resource });
  }
  ledger.begin(inherited);
  return { destination, log };
}

function ended(): CellarstreamError {
  return new CellarstreamError('COMMIT_FAILED', 'the service has ended meanwhile');
}

interface StrangersOptions {
  readonly config: TakeoverOptions['config'];
  readonly log: TransactionalLog;
  readonly cursors: string;
  readonly quotas: Pick<Quotas, 'lastAsked'>;
  readonly inherited: Inheritance;
  readonly now: number;
}

/**
 * Whether cursors were written in the last minute by somebody of whose requests nothing is known here: an
 * older version, which has no ledger.
 */
async function hasStrangers(options: StrangersOptions): Promise<boolean> {
  const { config, log, cursors, quotas, inherited, now } = options;
  const { record } = inherited;
  const knownUntil = record ? 0 : quotas.lastAsked() + IN_HAND_MS;
  const since = Math.max(knownUntil, now - WINDOW_MS);
  if (since >= now) return false;
  const { newest } = await newestCursors(log, cursors);
  return RESOURCES.some((resource) => {
    const task = taskId(config.account, resource);
    const cursor = newest.get(task);
    if (!cursor || Number(cursor.timestamp) < since) return false;
    return !record?.writers.includes(parseCursor(cursor.value.toString(), task).instance);
  });
}
