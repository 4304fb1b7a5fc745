// Compares a topic as it is with how the service would have made it.

import type { TopicSpec } from './topics.ts';

/** A topic as it is found. */
export interface FoundTopic {
  readonly partitions: number;
  /** Copies of the partition that has the fewest. */
  readonly replication: number;
  /** Its settings by name, those of {@link LOOKED_AT}; what the broker does not know is not there. */
  readonly settings: ReadonlyMap<string, string>;
}

/** Something of a topic that is not as it should be. */
export interface TopicFinding {
  readonly topic: string;
  /** A setting of Kafka's, or `partitions`, or `replication.factor`. */
  readonly setting: string;
  readonly found: string;
  readonly wanted: string;
  /** What comes of it. */
  readonly why: string;
  /** Whether data would be lost: then it is refused. */
  readonly isRefused: boolean;
}

/** The settings that matter. */
export const LOOKED_AT = [
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

/** What brokers take unless they are told otherwise, and batches are made for. */
const DEFAULT_MESSAGE_BYTES = 1_048_588;
/** With less, no order of some size can be published. */
const LEAST_MESSAGE_BYTES = 65_536;

/**
 * Holds a topic against how it would have been made. Refused is what loses data; what is only unwise is
 * said. More partitions, more copies and longer history than were asked for are fine.
 *
 * @param brokers How many there are.
 */
export function topicFindings(
  spec: TopicSpec,
  found: FoundTopic,
  others: ReadonlyMap<string, FoundTopic>,
  brokers: number,
): TopicFinding[] {
  const { topic, cleanupPolicy, fixedPartitions, numPartitions, keyedAs } = spec;
  const { partitions, replication, settings } = found;
  const findings: TopicFinding[] = [];
  const finding =
    (isRefused: boolean) =>
    (setting: string, is: string | number, wanted: string | number, why: string) =>
      void findings.push({
        topic,
        setting,
        found: String(is),
        wanted: String(wanted),
        why,
        isRefused,
      });
  const [refuse, doubt] = [finding(true), finding(false)];
  const wantedOf = (name: string) =>
    Number(spec.configEntries.find((entry) => entry.name === name)?.value);
  const numberOf = (name: (typeof LOOKED_AT)[number]) => {
    const text = settings.get(name);
    return text === undefined ? undefined : Number(text);
  };

  const policy = settings.get('cleanup.policy');
  if (policy !== undefined && policy !== cleanupPolicy) {
    refuse('cleanup.policy', policy, cleanupPolicy, LOST_BY[cleanupPolicy]);
  }
  if (fixedPartitions && partitions !== numPartitions) {
    refuse('partitions', partitions, numPartitions, 'its messages need one order');
  }
  const twin = keyedAs === undefined ? undefined : others.get(keyedAs);
  if (twin && twin.partitions !== partitions) {
    const why = `as ${keyedAs} has: consumers that join them by key need equal numbers`;
    doubt('partitions', partitions, twin.partitions, why);
  }

  const lagMs = numberOf('min.compaction.lag.ms');
  if (lagMs !== undefined && lagMs < wantedOf('min.compaction.lag.ms')) {
    const why = 'promised history can be compacted away earlier';
    doubt('min.compaction.lag.ms', lagMs, wantedOf('min.compaction.lag.ms'), why);
  }
  for (const name of ['retention.ms', 'retention.bytes'] as const) {
    const kept = numberOf(name);
    if (kept === undefined || kept < 0 || wantedOf(name) !== -1) continue;
    doubt(name, kept, -1, 'older events are deleted, and do not come again');
  }

  const clock = spec.configEntries.find(({ name }) => name === 'message.timestamp.type')?.value;
  const stamped = settings.get('message.timestamp.type');
  if (clock !== undefined && stamped !== undefined && stamped !== clock) {
    const why = 'the age of its newest entry is not known: a takeover waits for some seconds more';
    doubt('message.timestamp.type', stamped, clock, why);
  }

  const segmentMs = numberOf('segment.ms');
  if (segmentMs !== undefined && segmentMs > wantedOf('segment.ms')) {
    const why = 'it is compacted late, and each start reads all of it';
    doubt('segment.ms', segmentMs, wantedOf('segment.ms'), why);
  }
  const compression = settings.get('compression.type');
  if (compression !== undefined && compression !== 'producer') {
    const why = 'the brokers pack each batch again, and some clients need a package to read it';
    doubt('compression.type', compression, 'producer', why);
  }

  const bytes = numberOf('max.message.bytes');
  if (bytes !== undefined && bytes < LEAST_MESSAGE_BYTES) {
    refuse('max.message.bytes', bytes, DEFAULT_MESSAGE_BYTES, 'most events are larger');
  } else if (bytes !== undefined && bytes < DEFAULT_MESSAGE_BYTES) {
    const why = 'larger events are not published';
    doubt('max.message.bytes', bytes, DEFAULT_MESSAGE_BYTES, why);
  }

  const inSync = numberOf('min.insync.replicas');
  const copies = Math.min(3, brokers);
  if (inSync !== undefined && inSync > replication) {
    // Newer brokers ask for no more copies than there are; older ones take no message at all.
    const why = 'there are not that many copies, and older brokers then take no message';
    doubt('min.insync.replicas', inSync, replication, why);
  } else if (inSync === 1 && replication >= 3) {
    const why = 'messages that one broker alone has confirmed are lost with it';
    doubt('min.insync.replicas', inSync, 2, why);
  }
  if (replication < spec.replicationFactor || (replication === 1 && copies === 3)) {
    const why = 'the topic is lost with the disk of one broker';
    doubt('replication.factor', replication, Math.max(spec.replicationFactor, copies), why);
  }
  if (settings.get('unclean.leader.election.enable') === 'true') {
    const why = 'a broker that lacks what was confirmed can become the leader';
    doubt('unclean.leader.election.enable', 'true', 'false', why);
  }
  return findings;
}

/** The setting of a finding that stands for all of a topic's settings. */
const ALL_SETTINGS = 'settings';

/** Says of a topic whose settings this user may not look at what they have to be. */
export function unseenSettings({ topic, configEntries, required }: TopicSpec): TopicFinding {
  const wanted = configEntries
    .filter(({ name }) => required.includes(name))
    .map(({ name, value }) => `${name}=${value}`)
    .join(', ');
  const why = 'else events are lost; allow DescribeConfigs on it, and they are looked at';
  return { topic, setting: ALL_SETTINGS, found: 'not shown', wanted, why, isRefused: false };
}

const LOST_BY = {
  compact: 'records would be deleted by their age, though they still exist',
  delete: 'all but the newest event of a key would be deleted',
} as const;

/** What mends findings, for a shell; empty where nothing does but another topic. */
export function mendingCommands(findings: readonly TopicFinding[]): string {
  const isSetting = ({ setting }: TopicFinding) => LOOKED_AT.some((name) => name === setting);
  const alter = ({ topic, setting, wanted }: TopicFinding) =>
    `kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name ${topic} --add-config ${setting}=${wanted}`;
  return findings.filter(isSetting).map(alter).join(' && ');
}

/** A finding in words, as part of a line. */
export function findingText({
  topic,
  setting,
  found,
  wanted,
  why,
  isRefused,
}: TopicFinding): string {
  if (setting === ALL_SETTINGS) {
    return `the settings of ${topic} are not shown to this user, ${wanted} is needed: ${why}`;
  }
  const is = setting === 'partitions' ? `${found} partitions` : `${setting}=${found}`;
  return isRefused
    ? `${topic} has ${is}, it must be ${wanted} (${why})`
    : `${topic} has ${is}, ${wanted} is wanted: ${why}`;
}
