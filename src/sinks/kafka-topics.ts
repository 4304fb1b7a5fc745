import type { Admin, ITopicConfig, Kafka } from 'kafkajs';
import { CellarstreamError } from '../errors.ts';
import type { TopicSpec } from '../schemas/topics.ts';
import { cleanupPolicies } from './topic-bounds.ts';
import { withAdmin } from './with-admin.ts';

/** What {@link ensureTopics} needs. */
export interface TopicsOptions {
  readonly kafka: Kafka;
  /** The topics, for a number of copies of each. */
  readonly topics: (replication: number) => readonly TopicSpec[];
  /** Copies of each partition. Default the smaller of 3 and the number of brokers. */
  readonly replication: number | undefined;
}

/**
 * Makes the topics that are absent, and looks at those that are there: settings that would lose
 * data are an error, another number of partitions is taken as it is. Gives the partitions by topic.
 *
 * @throws CellarstreamError `TOPIC_SETTINGS`, one line naming every such topic; `KAFKA_UNREACHABLE`.
 */
export function ensureTopics(options: TopicsOptions): Promise<ReadonlyMap<string, number>> {
  return withAdmin(options.kafka, async (admin) => {
    const { brokers } = await admin.describeCluster();
    const specs = options.topics(options.replication ?? Math.min(3, brokers.length));
    const { absent } = await sort(admin, specs);
    if (absent.length > 0) {
      await admin.createTopics({ waitForLeaders: false, topics: absent.map(plain) });
    }
    const partitions = await partitionsOf(admin, specs);
    await inspect(admin, specs, partitions);
    return partitions;
  });
}

/**
 * Looks at the topics without making any: gives how many brokers there are, and the absent topics.
 *
 * @throws CellarstreamError as {@link ensureTopics}.
 */
export function inspectTopics(
  options: TopicsOptions,
): Promise<{ readonly brokers: number; readonly absent: readonly string[] }> {
  return withAdmin(options.kafka, async (admin) => {
    const { brokers } = await admin.describeCluster();
    const { there, absent } = await sort(admin, options.topics(1));
    if (there.length > 0) await inspect(admin, there, await partitionsOf(admin, there));
    return { brokers: brokers.length, absent: absent.map(({ topic }) => topic) };
  });
}

async function partitionsOf(admin: Admin, specs: readonly TopicSpec[]) {
  const { topics } = await admin.fetchTopicMetadata({ topics: specs.map(({ topic }) => topic) });
  return new Map(topics.map(({ name, partitions }) => [name, partitions.length]));
}

async function sort(admin: Admin, specs: readonly TopicSpec[]) {
  const names = new Set(await admin.listTopics());
  return {
    there: specs.filter(({ topic }) => names.has(topic)),
    absent: specs.filter(({ topic }) => !names.has(topic)),
  };
}

function plain({
  topic,
  numPartitions,
  replicationFactor,
  configEntries,
}: TopicSpec): ITopicConfig {
  return { topic, numPartitions, replicationFactor, configEntries };
}

async function inspect(
  admin: Admin,
  specs: readonly TopicSpec[],
  partitions: ReadonlyMap<string, number>,
): Promise<void> {
  const policies = await cleanupPolicies(admin, specs.map(({ topic }) => topic)); // prettier-ignore
  const wrong: string[] = [];
  for (const { topic, cleanupPolicy, fixedPartitions, numPartitions } of specs) {
    const policy = policies.get(topic);
    const count = partitions.get(topic);
    if (policy !== cleanupPolicy) {
      wrong.push(`${topic} has cleanup.policy=${policy}, it must be ${cleanupPolicy}`);
    }
    if (fixedPartitions && count !== numPartitions) {
      wrong.push(`${topic} has ${count} partitions, it must have ${numPartitions}`);
    }
  }
  if (wrong.length === 0) return;
  throw new CellarstreamError(
    'TOPIC_SETTINGS',
    `topics exist with settings that would lose data: ${wrong.join('; ')}. Change them, or set another TOPIC_PREFIX`,
  );
}
