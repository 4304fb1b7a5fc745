// Makes the topics of a service that are absent, and inspects those that are there, the registry's own among them.

import { CellarstreamError } from '../../core/errors.ts';
import type { TopicSpec } from '../../schemas/events/topics.ts';
import {
  findingText,
  LOOKED_AT,
  mendingCommands,
  topicFindings,
  unseenSettings,
} from '../../schemas/events/topic-findings.ts';
import type { FoundTopic, TopicFinding } from '../../schemas/events/topic-findings.ts';
import type { Brokers, Asked } from '../client/brokers.ts';
import { noLeader, protocolError } from '../client/protocol-errors.ts';
import { isUnsupported } from '../client/kafka-error.ts';
import { askBrokers } from '../client/brokers.ts';
import { createTopics } from './create-topics.ts';
import type { LeftOut } from './create-topics.ts';
import { describeSettings, metadata } from '../client/topic-calls.ts';
import type { TopicSettings } from '../client/topic-calls.ts';

/** What {@link openTopics} needs. */
export interface TopicsOptions extends Asked {
  /** The topics, for a number of copies of each. */
  readonly topics: (replication: number) => readonly TopicSpec[];
  /** Copies of each partition. Default the smaller of 3 and the number of brokers. */
  readonly replication: number | undefined;
}

/** Topics as they are. */
interface TopicsFound {
  readonly brokers: number;
  readonly partitions: ReadonlyMap<string, number>;
  /** By topic, the most bytes of a batch: `max.message.bytes`. */
  readonly maxMessageBytes: ReadonlyMap<string, number>;
  /** Settings that are unwise, were left out, or can't be seen. */
  readonly doubts: readonly TopicFinding[];
}

/** The same without anything having been made. */
interface TopicsInspected extends TopicsFound {
  readonly absent: readonly string[];
}

/**
 * Makes the topics that are absent, and looks at those that are there: settings that would lose
 * data are an error, another number of partitions is taken as it is.
 *
 * @throws CellarstreamError `TOPIC_SETTINGS`, one line naming every such topic; `KAFKA_UNREACHABLE`; `KAFKA_REFUSED`, as
 * {@link createTopics} does.
 */
export async function openTopics(options: TopicsOptions): Promise<TopicsFound> {
  const { specs, absent, brokers } = await lookedUp(options);
  const leftOut = await createTopics({ ...creation(options), specs: absent, isDryRun: false });
  return inspect(options, specs, brokers, leftOut);
}

/**
 * Looks at the topics without making any, and asks the brokers whether those that are absent could be made.
 *
 * @throws CellarstreamError as {@link openTopics}.
 */
export async function inspectTopics(options: TopicsOptions): Promise<TopicsInspected> {
  const { there, absent, brokers } = await lookedUp(options);
  const leftOut = await createTopics({ ...creation(options), specs: absent, isDryRun: true });
  const found = await inspect(options, there, brokers, leftOut);
  return { ...found, absent: absent.map(({ topic }) => topic) };
}

function creation({ kafka, connections, replication }: TopicsOptions) {
  return {
    kafka,
    ...(connections && { connections }),
    isReplicationFree: replication === undefined,
  };
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

/** How long brokers are asked: the caller that waits for Kafka is to hear soon that it is not there. */
const ASKED_MS = 1_000;
/** How long topics that were made just now, and leaders that have moved, are waited for, ms. */
const SETTLED_MS = 10_000;
/** Error codes of a topic that is there, and of one that has no leader just now. One that this user may not see has another. */
const THERE: ReadonlySet<number> = new Set([0, 5]);

async function inspect(
  asked: Asked,
  specs: readonly TopicSpec[],
  brokers: number,
  leftOut: readonly LeftOut[],
): Promise<TopicsFound> {
  const found = await foundTopics(asked, specs);
  const findings = specs.flatMap((spec) => {
    const { isSeen, ...topic } = found.get(spec.topic)!;
    const all = topicFindings(spec, topic, found, brokers);
    return isSeen ? all : [...all, unseenSettings(spec)];
  });
  const wrong = findings.filter(({ isRefused }) => isRefused);
  if (wrong.length > 0) {
    const commands = mendingCommands(wrong);
    throw new CellarstreamError(
      'TOPIC_SETTINGS',
      `topics exist with settings that would lose data: ${wrong.map(findingText).join('; ')}. Change them, or set another TOPIC_PREFIX${commands && `: ${commands}`}`,
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
    doubts: [
      ...leftOut.map((each) => ({
        ...each,
        found: found.get(each.topic)?.settings.get(each.setting) ?? "the brokers' default",
        isRefused: false,
      })),
      ...findings.filter((finding) => !finding.isRefused && !isLeftOut(finding)),
    ],
  };
}

interface SeenTopic extends FoundTopic {
  /** Whether this user may look at its settings. */
  readonly isSeen: boolean;
}

async function foundTopics(
  asked: Asked,
  specs: readonly TopicSpec[],
): Promise<ReadonlyMap<string, SeenTopic>> {
  if (specs.length === 0) return new Map();
  const names = specs.map(({ topic }) => topic);
  return askBrokers(asked, SETTLED_MS, async (brokers) => {
    const { topics } = await brokers.askAny(metadata(names));
    for (const { topic, errorCode, partitions } of topics) {
      if (errorCode !== 0) throw protocolError(errorCode, `the topic ${topic}`);
      const leaderless = partitions.find(({ leader }) => leader < 0);
      if (leaderless) throw noLeader(topic, leaderless.partition);
    }
    const settings = await settingsOf(brokers, names);
    return new Map(
      topics.map(({ topic, partitions }) => {
        const seen = settings.get(topic);
        const replication = Math.min(...partitions.map(({ replicas }) => replicas));
        const found = { partitions: partitions.length, replication };
        return [topic, { ...found, settings: seen ?? new Map(), isSeen: seen !== undefined }];
      }),
    );
  });
}

const NOT_ALLOWED: ReadonlySet<number> = new Set([29, 31]);

/** Settings of the topics that this user may look at; of none where the brokers do not tell settings at all. */
async function settingsOf(
  brokers: Brokers,
  names: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  let answers: readonly TopicSettings[];
  try {
    answers = await brokers.askAny(describeSettings(names, LOOKED_AT));
  } catch (error) {
    if (isUnsupported(error)) return new Map();
    throw error;
  }
  const seen = answers.filter(({ errorCode }) => !NOT_ALLOWED.has(errorCode));
  for (const { topic, errorCode } of seen) {
    if (errorCode !== 0) throw protocolError(errorCode, `the settings of ${topic}`);
  }
  return new Map(seen.map(({ topic, settings }) => [topic, settings]));
}

/** Default names of the topics in which registries keep schemas: Apicurio with KafkaSQL, and Confluent's and Karapace. */
const STORAGE_TOPICS = ['kafkasql-journal', '_schemas'];
const LIMITS = ['retention.ms', 'retention.bytes'];
/** How long an answer of the brokers is waited for, in ms. */
const PATIENCE_MS = 1_000;

/**
 * Warnings about a registry's storage topic in this cluster whose retention deletes schemas: after a restart the registry gives their ids to
 * other schemas. Topics that are absent, or whose settings this user may not read, give none.
 */
export async function registryStorageFindings(asked: Asked): Promise<readonly TopicFinding[]> {
  const answers = await askBrokers(asked, PATIENCE_MS, (brokers) =>
    brokers.askAny(describeSettings(STORAGE_TOPICS, ['cleanup.policy', ...LIMITS])),
  ).catch((error: unknown) => {
    if (isUnsupported(error)) return [];
    throw error;
  });
  return answers
    .filter(({ settings }) => settings.get('cleanup.policy')?.includes('delete'))
    .flatMap(({ topic, settings }) =>
      LIMITS.flatMap((setting) => {
        const found = settings.get(setting) ?? '-1';
        const why =
          'the schema registry keeps its schemas in this topic, and forgets those that Kafka deletes';
        return Number(found) < 0
          ? []
          : [{ topic, setting, found, wanted: '-1', why, isRefused: false }];
      }),
    );
}
