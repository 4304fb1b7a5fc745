import { brokersOf, brokersOver } from './client/brokers.ts';
import type { Brokers } from './client/brokers.ts';
import { kafkaError } from './client/kafka-error.ts';
import type { Links } from './client/open-kafka.ts';
import { kafkasOf } from './client/unanswered.ts';
import type { TransactionalLog } from './transactional-log.ts';
import { knownBounds } from './producer/bounds.ts';
import { metadata } from './producer/calls.ts';
import { openKafkaProducer } from './producer/kafka-producer.ts';
import type { KafkaProducerOptions } from './producer/kafka-producer.ts';
import { patience, persistently } from './producer/patience.ts';
import type { Patience } from './producer/patience.ts';
import { newestOfTopics } from './fetch/newest-of-topics.ts';
import { readTail } from './fetch/kafka-tail.ts';

/** How long brokers are asked where a topic ends, ms. */
const PATIENCE_MS = 5_000;

/**
 * Kafka, as tasks see it. `topics` are those that are written to, looked up whenever something is sent.
 *
 * @param links What others share with it. Default connections of its own, and what it has read itself.
 */
export function kafkaTransactionalLog(
  links: Pick<Links, 'kafka'> & Partial<Pick<Links, 'connections' | 'newest'>>,
  topics: Pick<KafkaProducerOptions, 'partitions' | 'maxMessageBytes'>,
): TransactionalLog {
  const { kafka, connections, newest = newestOfTopics(kafka) } = links;
  const asked = async <T>(ask: (brokers: Brokers, limit: Patience) => Promise<T>): Promise<T> => {
    const brokers = connections ? brokersOver(connections) : brokersOf(kafka);
    try {
      return await ask(brokers, patience(PATIENCE_MS, brokers.closed));
    } catch (error) {
      throw kafkaError(kafkasOf(error));
    } finally {
      brokers.close();
    }
  };
  const bounds: TransactionalLog['bounds'] = (topic, isolation = 'committed') =>
    asked((brokers, limit) => knownBounds({ topic, isolation, brokers, patience: limit }));
  const clusterId = (brokers: Brokers) => async () =>
    (await brokers.askAny(metadata([]))).clusterId;
  return {
    open: (transactionalId, own) =>
      openKafkaProducer({ kafka, connections, transactionalId, ...topics, own }),
    clusterId: () => asked((brokers, limit) => persistently(limit, clusterId(brokers))),
    ends: async (topic) =>
      new Map([...(await bounds(topic))].map(([partition, { high }]) => [partition, high])),
    bounds,
    readTail: (tail) => readTail({ kafka, ...tail }),
    newest: (topic, boundsOf) => newest(topic, 'committed').asOf(boundsOf),
  };
}
