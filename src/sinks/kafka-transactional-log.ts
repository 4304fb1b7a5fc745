import type { Kafka } from 'kafkajs';
import type { Connections } from './client/connections.ts';
import type { TransactionalLog } from './transactional-log.ts';
import { openKafkaProducer } from './producer/kafka-producer.ts';
import type { KafkaProducerOptions } from './producer/kafka-producer.ts';
import { readTail, topicEnds } from './fetch/kafka-tail.ts';
import { topicBounds } from './client/topic-bounds.ts';
import { withAdmin } from './client/with-admin.ts';

/**
 * Kafka, as tasks see it. `topics` are those that are written to, looked up whenever something is sent.
 *
 * @param connections Those that its sinks share. Default each has its own.
 */
export function kafkaTransactionalLog(
  kafka: Kafka,
  topics: Pick<KafkaProducerOptions, 'partitions' | 'maxMessageBytes'>,
  connections?: Connections,
): TransactionalLog {
  return {
    open: (transactionalId, own) =>
      openKafkaProducer({ kafka, connections, transactionalId, ...topics, own }),
    clusterId: () => withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId),
    ends: (topic) => topicEnds(kafka, topic),
    bounds: (topic) => withAdmin(kafka, (admin) => topicBounds(admin, topic)),
    readTail: (tail) => readTail({ kafka, ...tail }),
  };
}
