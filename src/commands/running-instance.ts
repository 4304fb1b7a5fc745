import type { Kafka } from 'kafkajs';
import { steadyScheduler } from '../core/clock.ts';
import type { ConfigWith } from '../config/config.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { kafkaTransactionalLog } from '../sinks/open-kafka.ts';
import { hasMessageSince } from '../kafka/fetch/kafka-tail.ts';
import { findActiveInstance } from '../pipeline/checkpoint/active-instance.ts';
import type { ActiveInstance } from '../pipeline/checkpoint/active-instance.ts';
import { existing } from '../kafka/client/topic-facts.ts';

/**
 * If the newest message of an account's ledger is older than this (ms, by the broker's clock), no instance is running and the ledger need
 * not be watched.
 */
const STALE_LEDGER_MS = 10 * 60_000;

/**
 * Returns the running instance that serves the account under this prefix, if there is one: see {@link findActiveInstance}. `onWatch` is
 * called before the ledger is watched, which takes several seconds.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`, `CURSOR_UNREADABLE`.
 */
export async function runningInstanceOf(
  { account, topics }: ConfigWith<'kafka'>,
  kafka: Kafka,
  onWatch?: () => void,
): Promise<ActiveInstance | undefined> {
  const scheduler = steadyScheduler;
  const { cursors, ledger } = topicNames(topics.prefix, topics.sharedPrefix);
  if ((await existing({ kafka }, [cursors, ledger])).size < 2) return undefined;
  if (!(await hasMessageSince(kafka, ledger, scheduler.now() - STALE_LEDGER_MS))) return undefined;
  onWatch?.();
  const log = kafkaTransactionalLog({ kafka }, { partitions: new Map() });
  return findActiveInstance({
    ...{ log, account, scheduler },
    ...{ ledgerTopic: ledger, cursorTopic: cursors },
  });
}

/** Formats the id of a running instance and its start time, as part of a line. */
export function instanceText({ instance, since }: ActiveInstance): string {
  const when = since === undefined ? '' : ` since ${new Date(since).toISOString()}`;
  return `instance ${instance}${when}`;
}
