import kafkajs from 'kafkajs';
import type { Admin } from 'kafkajs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Bounds } from '../sink.ts';

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

/** By topic, its `cleanup.policy`. */
export async function cleanupPolicies(
  admin: Admin,
  topics: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: topics.map((topic) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name: topic,
      configNames: ['cleanup.policy'],
    })),
  });
  return new Map(
    resources.flatMap(({ resourceName, configEntries }) =>
      configEntries
        .filter(({ configName }) => configName === 'cleanup.policy')
        .map(({ configValue }) => [resourceName, configValue] as const),
    ),
  );
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
