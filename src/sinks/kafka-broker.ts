import type { Kafka } from 'kafkajs';
import type { Broker } from './broker.ts';
import { openKafkaProducer } from './kafka-producer.ts';
import { readTail, topicEnds } from './kafka-tail.ts';
import { topicBounds } from './topic-bounds.ts';
import { withAdmin } from './with-admin.ts';

/**
 * Kafka, as tasks see it. `partitions` are those of each topic that is written to, as they are when a sink
 * is opened.
 */
export function kafkaBroker(kafka: Kafka, partitions: ReadonlyMap<string, number>): Broker {
  return {
    open: (transactionalId, own) => openKafkaProducer({ kafka, transactionalId, partitions, own }),
    clusterId: () => withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId),
    ends: (topic) => topicEnds(kafka, topic),
    bounds: (topic) => withAdmin(kafka, (admin) => topicBounds(admin, topic)),
    readTail: (tail) => readTail({ kafka, ...tail }),
  };
}
