import type { Kafka } from 'kafkajs';
import { steadyScheduler } from '../core/clock.ts';
import type { ConfigWith } from '../config/config.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { kafkaTransactionalLog } from '../sinks/client/open-kafka.ts';
import { writtenSince } from '../sinks/fetch/kafka-tail.ts';
import { livingInstance } from '../pipeline/checkpoint/living-instance.ts';
import type { LivingInstance } from '../pipeline/checkpoint/living-instance.ts';
import { existing } from '../sinks/client/topic-facts.ts';

/** Of a ledger that was written last before this, by the broker's clock, nobody is left: it need not be watched. */
const LONG_AGO_MS = 10 * 60_000;

/**
 * The instance that runs the account under this prefix, if one is alive: see {@link livingInstance}. `onWatch` is called
 * where that takes its time.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`, `CURSOR_UNREADABLE`.
 */
export async function whoRuns(
  { account, topics }: ConfigWith<'kafka'>,
  kafka: Kafka,
  onWatch?: () => void,
): Promise<LivingInstance | undefined> {
  const scheduler = steadyScheduler;
  const { cursors, ledger } = topicNames(topics.prefix, topics.sharedPrefix);
  if ((await existing({ kafka }, [cursors, ledger])).size < 2) return undefined;
  if (!(await writtenSince(kafka, ledger, scheduler.now() - LONG_AGO_MS))) return undefined;
  onWatch?.();
  const log = kafkaTransactionalLog({ kafka }, { partitions: new Map() });
  return livingInstance({
    ...{ log, account, scheduler },
    ...{ ledgerTopic: ledger, cursorTopic: cursors },
  });
}

/** Who it is, as part of a line. */
export function instanceText({ instance, since }: LivingInstance): string {
  const when = since === undefined ? '' : ` since ${new Date(since).toISOString()}`;
  return `instance ${instance}${when}`;
}
