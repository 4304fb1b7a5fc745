import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { inject } from 'vitest';
import { kafkaTransactionalLog } from '../../src/sinks/open-kafka.ts';
import { brokerContract } from '../sim/log-contract.ts';
import { createTopic } from './support/created-topic.ts';

brokerContract('Kafka', async () => {
  const topic = `contract-${randomUUID()}`;
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  await createTopic(kafka, { topic, numPartitions: 1 });
  return { broker: kafkaTransactionalLog({ kafka }, { partitions: new Map([[topic, 1]]) }), topic };
});
