import type { Kafka } from 'kafkajs';
import type { Broker } from './broker.ts';
import { openKafkaProducer } from './kafka-producer.ts';
import { readTail, topicEnds } from './kafka-tail.ts';
import { withAdmin } from './with-admin.ts';

/** Kafka, as tasks see it. `partitions` are those of each topic that is written to. */
export function kafkaBroker(kafka: Kafka, partitions: ReadonlyMap<string, number>): Broker {
  return {
    open: (transactionalId) => openKafkaProducer({ kafka, transactionalId, partitions }),
    clusterId: () => withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId),
    ends: (topic) => topicEnds(kafka, topic),
    readTail: (tail) => readTail({ kafka, ...tail }),
  };
}
