import { Partitioners } from 'kafkajs';
import type { Kafka, Producer } from 'kafkajs';

/** A producer that knows no transactions, not connected yet: no message is there twice. */
export function plainProducer(kafka: Kafka): Producer {
  return kafka.producer({
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    createPartitioner: Partitioners.DefaultPartitioner, // murmur2, as the Java client's
  });
}
