// @ts-check
// Topics: made, and thrown away when they are no longer needed.
import { Kafka, logLevel } from 'kafkajs';
import { topicBounds } from '../../dist/kafka/client/topic-facts.js';
import { withAdmin } from './with-admin.mjs';

/** Of each topic, as the service makes them. */
export const PARTITIONS = 6;

/** @param {Pick<import('./measure.mjs').Context, 'services'>} context */
export const connectKafka = ({ services }) =>
  new Kafka({ brokers: services.brokers, logLevel: logLevel.NOTHING });

/**
 * A topic that is there once this is over: its leaders answer.
 *
 * @param {Kafka} kafka
 * @param {Omit<import('kafkajs').ITopicConfig, 'numPartitions'>} topic
 */
export async function createTopic(kafka, topic) {
  const topics = [{ ...topic, numPartitions: PARTITIONS }];
  // Not kafkajs' own wait for leaders: that fails where a broker has not heard of the topic yet.
  await withAdmin(kafka, (admin) => admin.createTopics({ waitForLeaders: false, topics }));
  await topicBounds({ kafka }, topic.topic);
}

/**
 * What the runs before have written must not fill the disk.
 *
 * @param {Pick<import('./measure.mjs').Context, 'services'>} context
 * @param {string} prefix
 */
export const deleteTopics = (context, prefix) =>
  withAdmin(connectKafka(context), async (admin) => {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
    if (topics.length > 0) await admin.deleteTopics({ topics });
  });
