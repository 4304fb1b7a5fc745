import type { ITopicConfig, Kafka } from 'kafkajs';
import { withAdmin } from '../../support/with-admin.ts';

/** A topic that is there once this is over: its leaders answer. Nothing where it was there before. */
export async function createTopic(kafka: Kafka, topic: ITopicConfig): Promise<void> {
  // Not kafkajs' own wait for leaders: that fails where a broker has not heard of the topic yet.
  await withAdmin(kafka, (admin) => admin.createTopics({ waitForLeaders: false, topics: [topic] }));
  await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic.topic));
}
