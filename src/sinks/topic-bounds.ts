import kafkajs from 'kafkajs';
import type { Admin, Kafka } from 'kafkajs';
import { CellarstreamError } from '../errors.ts';
import { withAdmin } from './with-admin.ts';

/** Of a partition: the offset of the first message there is, and that behind the last committed one. */
export interface Bounds {
  readonly low: bigint;
  readonly high: bigint;
}

/**
 * Asked before anything else of a topic: kafkajs looks long for one that is not there.
 *
 * @param remedy What to do where it isn't: consumers make no topics.
 * @throws CellarstreamError `POSITION` where it isn't there.
 */
export async function requireTopic(admin: Admin, topic: string, remedy: string): Promise<void> {
  if ((await admin.listTopics()).includes(topic)) return;
  throw new CellarstreamError('POSITION', `there is no topic ${topic}: ${remedy}`, {
    context: { topic },
  });
}

/** Whether a topic's older messages of a key may be taken out of it. */
export function isCompacted(kafka: Kafka, topic: string): Promise<boolean> {
  return withAdmin(kafka, async (admin) => {
    const { resources } = await admin.describeConfigs({
      resources: [
        { type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames: ['cleanup.policy'] },
      ],
      includeSynonyms: false,
    });
    const policy = resources[0]?.configEntries.find(({ configName }) => configName === 'cleanup.policy'); // prettier-ignore
    return policy?.configValue.includes('compact') ?? false;
  });
}

/** By partition, in their order. */
export async function topicBounds(
  admin: Admin,
  topic: string,
): Promise<ReadonlyMap<number, Bounds>> {
  const offsets = await admin.fetchTopicOffsets(topic);
  return new Map(
    offsets
      .sort((a, b) => a.partition - b.partition)
      .map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]),
  );
}
