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
 * Age of the newest message in the ledger topic, in ms, above which it is assumed that no instance is running: an instance declares its
 * requests in the ledger.
 */
const STALE_LEDGER_MS = 10 * 60_000;

/**
 * Returns the instance that serves the account; undefined if none is detected. The account's ledger is observed for several seconds, so an
 * instance that polls rarely may be missed. `onWatch` is called before the observation begins.
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

/** Formats an instance as part of a line: its id and, if known, the time since which it has owned the account's lists. */
export function instanceText({ instance, since }: ActiveInstance): string {
  const when = since === undefined ? '' : ` since ${new Date(since).toISOString()}`;
  return `instance ${instance}${when}`;
}
