import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { inject } from 'vitest';
import { kafkaBroker } from '../../src/sinks/kafka-broker.ts';
import { brokerContract } from '../sim/broker-contract.ts';
import { createTopic } from './support/created-topic.ts';

brokerContract('Kafka', async () => {
  const topic = `contract-${randomUUID()}`;
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  await createTopic(kafka, { topic, numPartitions: 1 });
  return { broker: kafkaBroker(kafka, { partitions: new Map([[topic, 1]]) }), topic };
});
