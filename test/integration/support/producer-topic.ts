import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import type { KafkaMessage } from 'kafkajs';
import { expect } from 'vitest';
import type { Connections } from '../../../src/kafka/client/connections.ts';
import { openKafkaProducer } from '../../../src/sinks/producer/kafka-producer.ts';
import { readTail } from '../../../src/kafka/fetch/kafka-tail.ts';
import { topicEnds } from './topic-ends.ts';
import { partitionOf } from '../../../src/sinks/producer/record-batch.ts';
import type { TailMessage } from '../../../src/kafka/log.ts';
import type { Message, ProducerIdentity, TransactionalSink } from '../../../src/sinks/sink.ts';
import { createTopic } from './created-topic.ts';

export const PARTITIONS = 6;

/** A topic of a contract's own, and who writes to it. */
export interface Written {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly open: (own?: ProducerIdentity) => Promise<TransactionalSink>;
  readonly message: (partition: number, value: Buffer | string | null) => Message;
  /** One for each partition. */
  readonly page: (value: string) => Message[];
  /** By partition, the values that were committed, once there are as many in all: markers come a little later. */
  readonly committed: (count: number) => Promise<string[][]>;
}

/** @param connections Which its producers share with others. Default each has its own. */
export async function writtenOn(
  brokers: readonly string[],
  connections?: Connections,
): Promise<Written> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const topic = `producer-${randomUUID()}`;
  await createTopic(kafka, { topic, numPartitions: PARTITIONS });
  const keys = Array.from({ length: PARTITIONS }, (_, partition) => keyOf(partition));
  const message = (partition: number, value: Buffer | string | null): Message => ({
    topic,
    key: keys[partition]!,
    value: typeof value === 'string' ? Buffer.from(value) : value,
  });
  return {
    kafka,
    topic,
    message,
    open: (own) =>
      openKafkaProducer({
        kafka,
        connections,
        transactionalId: topic,
        partitions: new Map([[topic, PARTITIONS]]),
        previousIdentity: own,
      }),
    page: (value) => keys.map((_, partition) => message(partition, value)),
    committed: async (count) => {
      let found: string[][] = [];
      const read = async () => {
        found = await valuesOf(kafka, topic);
        return found.flat().length;
      };
      await expect.poll(read, { timeout: 60_000, interval: 200 }).toBeGreaterThanOrEqual(count);
      return found;
    },
  };
}

function keyOf(partition: number): string {
  for (let n = 0; ; n++) if (partitionOf(String(n), PARTITIONS) === partition) return String(n);
}

export async function tailOf(kafka: Kafka, topic: string): Promise<TailMessage[]> {
  const read: TailMessage[] = [];
  const onMessages = (messages: readonly TailMessage[]) => {
    read.push(...messages);
    return Promise.resolve();
  };
  await readTail({ kafka, topic, from: new Map(), to: await topicEnds(kafka, topic), onMessages });
  return read;
}

async function valuesOf(kafka: Kafka, topic: string): Promise<string[][]> {
  const values: string[][] = Array.from({ length: PARTITIONS }, () => []);
  for (const { partition, value } of await tailOf(kafka, topic)) {
    values[partition]!.push(value === null ? 'tombstone' : value.toString('latin1', 0, 20));
  }
  return values;
}

/** So many values in each partition, and in this order. */
export const inEach = (...values: string[]): string[][] =>
  Array.from({ length: PARTITIONS }, () => values);

/** As a stranger reads them, headers and all: by a consumer of kafkajs. */
export async function readByKafkajs(
  kafka: Kafka,
  topic: string,
  count: number,
): Promise<KafkaMessage[]> {
  const consumer = kafka.consumer({ groupId: topic });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const read: KafkaMessage[] = [];
  await new Promise<void>((resolve, reject) => {
    const eachMessage = ({ message }: { message: KafkaMessage }) => {
      if (read.push(message) === count) resolve();
      return Promise.resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return read;
}
