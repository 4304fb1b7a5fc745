import type { Kafka } from 'kafkajs';
import { withAdmin } from '../../support/with-admin.ts';
import type { Offsets } from '../../../src/kafka/log.ts';

/** The offsets at which the partitions of a topic end just now. */
export function topicEnds(kafka: Kafka, topic: string): Promise<Offsets> {
  return withAdmin(kafka, async (admin) => {
    const ends = await admin.fetchTopicOffsets(topic);
    return new Map(ends.map(({ partition, high }) => [partition, BigInt(high)]));
  });
}
