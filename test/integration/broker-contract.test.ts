import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { inject, onTestFinished } from 'vitest';
import { kafkaBroker } from '../../src/sinks/kafka-broker.ts';
import { brokerContract } from '../sim/broker-contract.ts';

brokerContract('Kafka', async () => {
  const topic = `contract-${randomUUID()}`;
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  onTestFinished(() => admin.disconnect());
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 1 }] });
  return { broker: kafkaBroker(kafka, new Map([[topic, 1]])), topic };
});
