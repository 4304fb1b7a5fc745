import kafkajs from 'kafkajs';
import type { Admin, ITopicConfig } from 'kafkajs';
import { CellarstreamError } from '../../core/errors.ts';
import type { TopicSpec } from '../../schemas/events/topics.ts';
import {
  findingText,
  LOOKED_AT,
  mendingCommands,
  topicFindings,
} from '../../schemas/events/topic-findings.ts';
import type { FoundTopic, TopicFinding } from '../../schemas/events/topic-findings.ts';
import { withAdmin } from '../client/with-admin.ts';
import { askBrokers } from '../producer/ask-brokers.ts';
import type { Asked } from '../producer/ask-brokers.ts';
import { metadata } from '../producer/calls.ts';

/** What {@link ensureTopics} needs. */
export interface TopicsOptions extends Asked {
  /** The topics, for a number of copies of each. */
  readonly topics: (replication: number) => readonly TopicSpec[];
  /** Copies of each partition. Default the smaller of 3 and the number of brokers. */
  readonly replication: number | undefined;
}

/** Topics as they are. */
export interface TopicsFound {
  readonly brokers: number;
  readonly partitions: ReadonlyMap<string, number>;
  /** By topic, the most bytes of a batch: `max.message.bytes`. */
  readonly maxMessageBytes: ReadonlyMap<string, number>;
  /** What is unwise of them. */
  readonly doubts: readonly TopicFinding[];
  /** Those that are not there. */
  readonly absent: readonly string[];
}

/**
 * Makes the topics that are absent, and looks at those that are there: settings that would lose
 * data are an error, another number of partitions is taken as it is. Gives the partitions by topic.
 *
 * @throws CellarstreamError `TOPIC_SETTINGS`, one line naming every such topic; `KAFKA_UNREACHABLE`.
 */
export async function ensureTopics(options: TopicsOptions): Promise<ReadonlyMap<string, number>> {
  return (await openTopics(options)).partitions;
}

/**
 * The same, with all that was found.
 *
 * @throws CellarstreamError as {@link ensureTopics}.
 */
export async function openTopics(options: TopicsOptions): Promise<TopicsFound> {
  const { specs, absent, brokers } = await lookedUp(options);
  return withAdmin(options.kafka, async (admin) => {
    if (absent.length > 0) {
      await admin.createTopics({ waitForLeaders: false, topics: absent.map(plain) });
    }
    return { ...(await inspect(admin, specs, brokers)), absent: [] };
  });
}

/**
 * Looks at the topics without making any.
 *
 * @throws CellarstreamError as {@link ensureTopics}.
 */
export async function inspectTopics(options: TopicsOptions): Promise<TopicsFound> {
  const { there, absent, brokers } = await lookedUp(options);
  return withAdmin(options.kafka, async (admin) => ({
    ...(await inspect(admin, there, brokers)),
    absent: absent.map(({ topic }) => topic),
  }));
}

/** Which of the topics are there. Only they are asked for: of other accounts there may be thousands. */
async function lookedUp(options: TopicsOptions) {
  const { topics, replication } = options;
  const names = topics(1).map(({ topic }) => topic);
  const found = await askBrokers(options, ASKED_MS, (any) => any.askAny(metadata(names)));
  const brokers = found.brokers.length;
  const specs = topics(replication ?? Math.min(3, brokers));
  const known = new Set(
    found.topics.filter(({ errorCode }) => THERE.has(errorCode)).map(({ topic }) => topic),
  );
  return {
    specs,
    brokers,
    there: specs.filter(({ topic }) => known.has(topic)),
    absent: specs.filter(({ topic }) => !known.has(topic)),
  };
}

/** How long brokers are asked: who waits for Kafka is to hear soon that it is not there. */
const ASKED_MS = 1_000;
/** In metadata, of a topic that is there, and of one that has no leader just now. Of one that may not be seen nobody knows. */
const THERE: ReadonlySet<number> = new Set([0, 5]);

function plain({
  topic,
  numPartitions,
  replicationFactor,
  configEntries,
}: TopicSpec): ITopicConfig {
  return { topic, numPartitions, replicationFactor, configEntries };
}

async function inspect(admin: Admin, specs: readonly TopicSpec[], brokers: number) {
  const found = await foundTopics(
    admin,
    specs.map(({ topic }) => topic),
  );
  const findings = specs.flatMap((spec) =>
    topicFindings(spec, found.get(spec.topic)!, found, brokers),
  );
  const wrong = findings.filter(({ isRefused }) => isRefused);
  if (wrong.length > 0) {
    const commands = mendingCommands(wrong);
    throw new CellarstreamError(
      'TOPIC_SETTINGS',
      `topics exist with settings that would lose data: ${wrong.map(findingText).join('; ')}. Change them, or set another TOPIC_PREFIX${commands && `: ${commands}`}`,
    );
  }
  return {
    brokers,
    partitions: new Map([...found].map(([topic, { partitions }]) => [topic, partitions])),
    maxMessageBytes: new Map(
      [...found].flatMap(([topic, { settings }]) => {
        const bytes = settings.get('max.message.bytes');
        return bytes === undefined ? [] : [[topic, Number(bytes)] as const];
      }),
    ),
    doubts: findings.filter(({ isRefused }) => !isRefused),
  };
}

async function foundTopics(
  admin: Admin,
  topics: readonly string[],
): Promise<ReadonlyMap<string, FoundTopic>> {
  if (topics.length === 0) return new Map();
  const { topics: all } = await admin.fetchTopicMetadata({ topics: [...topics] });
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: topics.map((name) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name,
      configNames: [...LOOKED_AT],
    })),
  });
  const settings = new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  );
  return new Map(
    all.map(({ name, partitions }) => [
      name,
      {
        partitions: partitions.length,
        replication: Math.min(...partitions.map(({ replicas }) => replicas.length)),
        settings: settings.get(name) ?? new Map<string, string>(),
      },
    ]),
  );
}
