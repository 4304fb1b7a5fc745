import type { TopicSpec } from './topics.ts';

export interface ExistingTopic {
  readonly partitions: number;
  /** Smallest number of replicas of any partition. */
  readonly replication: number;
  /** Values of the topic's {@link CHECKED_SETTINGS} by name, without those that the broker does not support. */
  readonly settings: ReadonlyMap<string, string>;
}

/** A property of an existing topic that differs from what the service wants, or the fact that the topic's settings can't be read. */
export interface TopicFinding {
  readonly topic: string;
  /** Name of a Kafka topic setting; or `partitions`, `replication.factor`, or `settings` for all settings together. */
  readonly setting: string;
  readonly found: string;
  readonly wanted: string;
  /** Why the difference between topic and specification matters, as part of a log or error message. */
  readonly why: string;
  /** Whether the service refuses to use a topic with this finding. If false, the service only reports the finding. */
  readonly isRefused: boolean;
}

/** Topic settings that {@link topicFindings} checks. */
export const CHECKED_SETTINGS = [
  'cleanup.policy',
  'min.compaction.lag.ms',
  'retention.ms',
  'retention.bytes',
  'max.message.bytes',
  'min.insync.replicas',
  'unclean.leader.election.enable',
  'message.timestamp.type',
  'segment.ms',
  'compression.type',
] as const;

/** Kafka's default for `max.message.bytes`, in bytes. In a topic with a lower limit, the largest events are not published. */
const DEFAULT_MESSAGE_BYTES = 1_048_588;
/**
 * Lowest `max.message.bytes` with which the service accepts a topic, in bytes. With a lower value, most events would be too large for the
 * topic.
 */
const LEAST_MESSAGE_BYTES = 65_536;

/**
 * Returns what is wrong or unwise about an existing topic, compared with the specification from which the service would create it. A
 * finding with {@link TopicFinding.isRefused} makes the service refuse the topic.
 *
 * @param others Existing topics by name, to compare the partition counts of co-partitioned topics.
 * @param brokers Number of brokers in the cluster.
 */
export function topicFindings(
  spec: TopicSpec,
  found: ExistingTopic,
  others: ReadonlyMap<string, ExistingTopic>,
  brokers: number,
): TopicFinding[] {
  const { topic, cleanupPolicy, fixedPartitions, numPartitions, copartitionedWith } = spec;
  const { partitions, replication, settings } = found;
  const findings: TopicFinding[] = [];
  const add = (isRefused: boolean) => {
    return (setting: string, is: string | number, wanted: string | number, why: string) => {
      const values = { found: String(is), wanted: String(wanted) };
      findings.push({ topic, setting, ...values, why, isRefused });
    };
  };
  const [refuse, doubt] = [add(true), add(false)];
  /** Returns the value of a numeric setting; NaN if the broker does not report the setting, so that every comparison with it is false. */
  const numberOf = (name: (typeof CHECKED_SETTINGS)[number]) => Number(settings.get(name));
  /**
   * Adds a finding with the explanation `why` if the topic's value of a setting is worse than the specified one, as `isWorse` decides. Adds
   * none if one of the two values is unknown.
   */
  const compare = (
    setting: (typeof CHECKED_SETTINGS)[number],
    isWorse: (actual: string, wanted: string) => boolean,
    why: string,
  ) => {
    const actual = settings.get(setting);
    const wanted = spec.configEntries.find(({ name }) => name === setting)?.value;
    if (actual !== undefined && wanted !== undefined && isWorse(actual, wanted))
      doubt(setting, actual, wanted, why);
  };
  const isLess = (actual: string, wanted: string) => Number(actual) < Number(wanted);
  const isMore = (actual: string, wanted: string) => Number(actual) > Number(wanted);
  const isOther = (actual: string, wanted: string) => actual !== wanted;
  const isLimit = (actual: string, wanted: string) => Number(actual) >= 0 && wanted === '-1';

  const policy = settings.get('cleanup.policy');
  if (policy !== undefined && policy !== cleanupPolicy) {
    refuse('cleanup.policy', policy, cleanupPolicy, DATA_LOSS_TEXTS[cleanupPolicy]);
  }
  if (fixedPartitions && partitions !== numPartitions) {
    refuse('partitions', partitions, numPartitions, 'its messages need a total order');
  }
  const twin = copartitionedWith === undefined ? undefined : others.get(copartitionedWith);
  if (twin && twin.partitions !== partitions) {
    const why = `as ${copartitionedWith} has: consumers that join them by key need equal numbers of partitions`;
    doubt('partitions', partitions, twin.partitions, why);
  }

  compare('min.compaction.lag.ms', isLess, 'compaction can remove events earlier than documented');
  const deletes = 'older events are deleted, and are not published again';
  compare('retention.ms', isLimit, deletes);
  compare('retention.bytes', isLimit, deletes);
  const unknownAge =
    'otherwise the age of its newest entry is unknown, and a claim waits some seconds longer';
  compare('message.timestamp.type', isOther, unknownAge);
  compare('segment.ms', isMore, 'it is compacted late, and each start reads all of it');
  const recompresses =
    'the brokers recompress each batch, and some clients need a package to read it';
  compare('compression.type', isOther, recompresses);

  const bytes = numberOf('max.message.bytes');
  if (bytes < LEAST_MESSAGE_BYTES) {
    refuse('max.message.bytes', bytes, DEFAULT_MESSAGE_BYTES, 'most events are larger');
  } else if (bytes < DEFAULT_MESSAGE_BYTES) {
    const why = 'larger events are not published';
    doubt('max.message.bytes', bytes, DEFAULT_MESSAGE_BYTES, why);
  }

  const inSync = numberOf('min.insync.replicas');
  const copies = Math.min(3, brokers);
  if (inSync > replication) {
    // Newer brokers require no more replicas than exist; older ones reject every message.
    const why = 'the topic has fewer replicas, and older brokers then accept no messages';
    doubt('min.insync.replicas', inSync, replication, why);
  } else if (inSync === 1 && replication >= 3) {
    const why = 'messages that only one broker has acknowledged are lost if it fails';
    doubt('min.insync.replicas', inSync, 2, why);
  }
  if (replication < spec.replicationFactor || (replication === 1 && copies === 3)) {
    const why = 'the topic is lost if the disk of one broker fails';
    doubt('replication.factor', replication, Math.max(spec.replicationFactor, copies), why);
  }
  if (settings.get('unclean.leader.election.enable') === 'true') {
    const why = 'a broker that lacks acknowledged messages can become partition leader';
    doubt('unclean.leader.election.enable', 'true', 'false', why);
  }
  return findings;
}

/** Value of {@link TopicFinding.setting} in a finding that concerns all settings of a topic. */
const ALL_SETTINGS = 'settings';

/** Returns the finding for a topic whose settings this Kafka user has no right to see. */
export function hiddenSettingsFindings(spec: TopicSpec): TopicFinding {
  const { topic, configEntries, required } = spec;
  const wanted = configEntries
    .filter(({ name }) => required.includes(name))
    .map(({ name, value }) => `${name}=${value}`)
    .join(', ');
  const why =
    'otherwise events are lost; allow DescribeConfigs on the topic, so that its settings can be checked';
  return { topic, setting: ALL_SETTINGS, found: 'not shown', wanted, why, isRefused: false };
}

const DATA_LOSS_TEXTS = {
  compact: 'records would be deleted by their age, though they still exist',
  delete: 'all but the newest event of a key would be deleted',
} as const;

/**
 * Returns `kafka-configs.sh` commands, joined by `&&`, that correct the findings about {@link CHECKED_SETTINGS}. Empty if there are no such
 * findings.
 */
export function repairCommands(findings: readonly TopicFinding[]): string {
  const names: readonly string[] = CHECKED_SETTINGS;
  const alter = ({ topic, setting, wanted }: TopicFinding) =>
    `kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name ${topic} --add-config ${setting}=${wanted}`;
  return findings
    .filter(({ setting }) => names.includes(setting))
    .map(alter)
    .join(' && ');
}

/** Formats a difference between a topic and its specification as part of a log or error message. */
export function findingText(finding: TopicFinding): string {
  const { topic, setting, found, wanted, why } = finding;
  if (setting === ALL_SETTINGS) {
    return `the settings of ${topic} are not shown to this user, ${wanted} is needed: ${why}`;
  }
  const is = setting === 'partitions' ? `${found} partitions` : `${setting}=${found}`;
  return finding.isRefused
    ? `${topic} has ${is}, it must be ${wanted} (${why})`
    : `${topic} has ${is}, ${wanted} is wanted: ${why}`;
}
