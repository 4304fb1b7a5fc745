// Creates the missing topics of a service, and inspects the existing ones, also those in which a schema registry stores its schemas.

import { CellarstreamError } from '../../core/errors.ts';
import { KAFKA_LIMITS } from '../../core/retries.ts';
import type { TopicSpec } from '../../schemas/events/topics.ts';
import {
  findingText,
  CHECKED_SETTINGS,
  repairCommands,
  topicFindings,
  hiddenSettingsFindings,
} from '../../schemas/events/topic-findings.ts';
import type { ExistingTopic, TopicFinding } from '../../schemas/events/topic-findings.ts';
import type { Brokers, ClusterAccess } from '../../kafka/client/brokers.ts';
import { noLeaderError, protocolError } from '../../kafka/client/protocol-errors.ts';
import { hasErrorType } from '../../kafka/client/kafka-error.ts';
import { withBrokers } from '../../kafka/client/brokers.ts';
import { createTopics, UNAUTHORIZED_CODES } from './create-topics.ts';
import type { OmittedSetting } from './create-topics.ts';
import { describeSettings, metadata } from '../../kafka/client/topic-calls.ts';
import { existingIn } from '../../kafka/client/topic-facts.ts';

export interface TopicsOptions extends ClusterAccess {
  /** Returns the topics with their settings. @param replication Number of replicas of each partition. */
  readonly topics: (replication: number) => readonly TopicSpec[];
  /** Number of replicas of each partition. Default: the smaller of 3 and the number of brokers. */
  readonly replication: number | undefined;
}

interface TopicsState {
  readonly brokers: number;
  readonly partitions: ReadonlyMap<string, number>;
  /** Largest batch that a topic accepts (`max.message.bytes`), in bytes, by topic. Topics for which it is unknown are left out. */
  readonly maxMessageBytes: ReadonlyMap<string, number>;
  /** Findings about settings that are unwise, refused by the brokers, or unreadable. */
  readonly warnings: readonly TopicFinding[];
}

/**
 * Creates the missing topics, and inspects the settings of all of them. Two things are errors: settings with which data would be lost, and
 * a wrong number of partitions in a topic with {@link TopicSpec.fixedPartitions}.
 *
 * @throws CellarstreamError `TOPIC_SETTINGS`, in one line with all topics that have such errors; `KAFKA_UNREACHABLE`; `KAFKA_REFUSED`, as
 * {@link createTopics} does.
 */
export async function openTopics(options: TopicsOptions): Promise<TopicsState> {
  const { specs, absent, brokers } = await existingTopics(options);
  const leftOut = await createTopics({ ...options, specs: absent, isDryRun: false });
  return inspect(options, specs, brokers, leftOut);
}

/**
 * Inspects the existing topics. Creates no topics, but lets the brokers validate whether the missing ones could be created.
 *
 * @throws CellarstreamError as {@link openTopics}.
 */
export async function inspectTopics(options: TopicsOptions) {
  const { there, absent, brokers } = await existingTopics(options);
  const leftOut = await createTopics({ ...options, specs: absent, isDryRun: true });
  const found = await inspect(options, there, brokers, leftOut);
  return { ...found, absent: absent.map(({ topic }) => topic) };
}

/**
 * Determines which of the topics exist. Requests the metadata of these topics alone, because the cluster may have thousands for other
 * accounts.
 */
async function existingTopics(options: TopicsOptions) {
  const { topics, replication } = options;
  const names = topics(1).map(({ topic }) => topic);
  const found = await withBrokers(options, KAFKA_LIMITS.startQuery, (any) =>
    any.sendToAny(metadata(names)),
  );
  const brokers = found.brokers.length;
  const specs = topics(replication ?? Math.min(3, brokers));
  const known = existingIn(found);
  return {
    specs,
    brokers,
    there: specs.filter(({ topic }) => known.has(topic)),
    absent: specs.filter(({ topic }) => !known.has(topic)),
  };
}

async function inspect(
  cluster: ClusterAccess,
  specs: readonly TopicSpec[],
  brokers: number,
  leftOut: readonly OmittedSetting[],
): Promise<TopicsState> {
  const found = await inspectTopicSettings(cluster, specs);
  const findings = specs.flatMap((spec) => {
    const { hasReadableSettings, ...topic } = found.get(spec.topic)!;
    const all = topicFindings(spec, topic, found, brokers);
    return hasReadableSettings ? all : [...all, hiddenSettingsFindings(spec)];
  });
  const wrong = findings.filter(({ isRefused }) => isRefused);
  if (wrong.length > 0) {
    const commands = repairCommands(wrong);
    throw new CellarstreamError(
      'TOPIC_SETTINGS',
      `the service can't use these topics as they are: ${wrong.map(findingText).join('; ')}. Set another TOPIC_PREFIX, or correct the topics (a number of partitions can only be reduced by deleting a topic and creating it again)${commands && `: ${commands}`}`,
    );
  }
  const isLeftOut = ({ topic, setting }: TopicFinding) =>
    leftOut.some((each) => each.topic === topic && each.setting === setting);
  return {
    brokers,
    partitions: new Map([...found].map(([topic, { partitions }]) => [topic, partitions])),
    maxMessageBytes: new Map(
      [...found].flatMap(([topic, { settings }]) => {
        const bytes = settings.get('max.message.bytes');
        return bytes === undefined ? [] : [[topic, Number(bytes)] as const];
      }),
    ),
    warnings: [
      ...leftOut.map((each) => ({
        ...each,
        found: found.get(each.topic)?.settings.get(each.setting) ?? "the brokers' default",
        isRefused: false,
      })),
      ...findings.filter((finding) => !finding.isRefused && !isLeftOut(finding)),
    ],
  };
}

interface InspectedTopic extends ExistingTopic {
  readonly hasReadableSettings: boolean;
}

async function inspectTopicSettings(
  cluster: ClusterAccess,
  specs: readonly TopicSpec[],
): Promise<ReadonlyMap<string, InspectedTopic>> {
  if (specs.length === 0) return new Map();
  const names = specs.map(({ topic }) => topic);
  return withBrokers(cluster, KAFKA_LIMITS.query, async (brokers) => {
    const { topics } = await brokers.sendToAny(metadata(names));
    for (const { topic, errorCode, partitions } of topics) {
      if (errorCode !== 0) throw protocolError(errorCode, `the topic ${topic}`);
      const leaderless = partitions.find(({ leader }) => leader < 0);
      if (leaderless) throw noLeaderError(topic, leaderless.partition);
    }
    const settings = await settingsOf(brokers, names);
    return new Map(
      topics.map(({ topic, partitions }) => [
        topic,
        {
          partitions: partitions.length,
          replication: Math.min(...partitions.map(({ replicas }) => replicas)),
          settings: settings.get(topic) ?? new Map(),
          hasReadableSettings: settings.has(topic),
        },
      ]),
    );
  });
}

/**
 * Returns the settings of each topic, without topics whose settings this client's user has no right to read. Empty if the brokers do not
 * support the request.
 */
async function settingsOf(
  brokers: Brokers,
  names: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const call = describeSettings(names, CHECKED_SETTINGS);
  const answers = await brokers.sendToAny(call).catch(noneIfUnsupported);
  const seen = answers.filter(({ errorCode }) => !UNAUTHORIZED_CODES.has(errorCode));
  for (const { topic, errorCode } of seen) {
    if (errorCode !== 0) throw protocolError(errorCode, `the settings of ${topic}`);
  }
  return new Map(seen.map(({ topic, settings }) => [topic, settings]));
}

/** Error handler that returns an empty array if the brokers do not support the request, and throws every other error again. */
function noneIfUnsupported(error: unknown): [] {
  if (hasErrorType(error, 'UNSUPPORTED_VERSION')) return [];
  throw error;
}

/**
 * Default names of the topics in which schema registries store schemas: `kafkasql-journal` of Apicurio with KafkaSQL, `_schemas` of
 * Confluent's registry and Karapace.
 */
const STORAGE_TOPICS = ['kafkasql-journal', '_schemas'];
const LIMITS = ['retention.ms', 'retention.bytes'];

/**
 * Returns a warning for each retention setting with which Kafka deletes schemas from the storage topic of a schema registry. The registry
 * would then assign the deleted schemas' ids to other schemas. Only topics with the default names are checked.
 */
export async function registryStorageFindings(
  cluster: ClusterAccess,
): Promise<readonly TopicFinding[]> {
  const answers = await withBrokers(cluster, KAFKA_LIMITS.startQuery, (brokers) =>
    brokers.sendToAny(describeSettings(STORAGE_TOPICS, ['cleanup.policy', ...LIMITS])),
  ).catch(noneIfUnsupported);
  return answers
    .filter(({ settings }) => settings.get('cleanup.policy')?.includes('delete'))
    .flatMap(({ topic, settings }) =>
      LIMITS.flatMap((setting) => {
        const found = settings.get(setting) ?? '-1';
        if (Number(found) < 0) return [];
        const why =
          'the schema registry keeps its schemas in this topic, and forgets those that Kafka deletes';
        return [{ topic, setting, found, wanted: '-1', why, isRefused: false }];
      }),
    );
}
