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
  if (!(await admin.listTopics()).includes(topic)) throw noTopic(topic, remedy);
}

/** What is said of a topic that isn't there. */
export function noTopic(topic: string, remedy: string): CellarstreamError {
  return new CellarstreamError('POSITION', `there is no topic ${topic}: ${remedy}`, {
    context: { topic },
  });
}

/** By topic, its `cleanup.policy`. */
export async function cleanupPolicies(
  admin: Admin,
  topics: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const settings = await topicSettings(admin, topics, ['cleanup.policy']);
  return new Map(
    [...settings].map(([topic, values]) => [topic, values.get('cleanup.policy') ?? '']),
  );
}

/** How long compaction leaves a topic's messages alone, ms; for ever, where it is not compacted. */
export async function compactionLag(admin: Admin, topic: string): Promise<number> {
  const names = ['cleanup.policy', 'min.compaction.lag.ms'];
  const values = (await topicSettings(admin, [topic], names)).get(topic);
  if (!values?.get('cleanup.policy')?.includes('compact')) return Infinity;
  return Number(values.get('min.compaction.lag.ms') ?? 0);
}

/** By topic, its settings of these names. */
async function topicSettings(
  admin: Admin,
  topics: readonly string[],
  names: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: topics.map((topic) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name: topic,
      configNames: [...names],
    })),
  });
  return new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
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
