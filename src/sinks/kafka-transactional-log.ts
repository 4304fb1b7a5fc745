import type { Links } from './client/open-kafka.ts';
import { readTail } from './fetch/kafka-tail.ts';
import { newestOfTopics } from './fetch/newest-of-topics.ts';
import type { Asked } from './producer/ask-brokers.ts';
import { clusterFacts } from './producer/cluster-facts.ts';
import { openKafkaProducer } from './producer/kafka-producer.ts';
import type { KafkaProducerOptions } from './producer/kafka-producer.ts';
import type { TransactionalLog } from './transactional-log.ts';

/**
 * Kafka, as tasks see it. `topics` are those that are written to, looked up whenever something is sent.
 *
 * @param links What others share with it. Default connections of its own, and what it has read itself.
 */
export function kafkaTransactionalLog(
  links: Asked & Partial<Pick<Links, 'newest' | 'cluster'>>,
  topics: Pick<KafkaProducerOptions, 'partitions' | 'maxMessageBytes'>,
): TransactionalLog {
  const { kafka, connections } = links;
  const { newest = newestOfTopics(kafka), cluster = clusterFacts(links) } = links;
  const bounds: TransactionalLog['bounds'] = (topic, isolation = 'committed') =>
    cluster.bounds(topic, isolation);
  return {
    open: (transactionalId, own) =>
      openKafkaProducer({ kafka, connections, transactionalId, ...topics, own }),
    clusterId: cluster.id,
    ends: async (topic) =>
      new Map([...(await bounds(topic))].map(([partition, { high }]) => [partition, high])),
    bounds,
    readTail: (tail) => readTail({ kafka, ...tail }),
    newest: (topic, boundsOf) => newest(topic, 'committed').asOf(boundsOf),
  };
}
