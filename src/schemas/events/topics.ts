// Names and Kafka settings of the topics that the service writes.

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Retention settings of a topic from which Kafka must not delete messages, because the service never publishes them again. */
const UNLIMITED_RETENTION = { 'retention.ms': -1, 'retention.bytes': -1 };

/** How Kafka frees space in a topic: retains the newest message of each key, or deletes messages by age. The wrong policy loses data. */
type CleanupPolicy = 'compact' | 'delete';

/** Specification of a topic, as the service creates it. */
export interface TopicSpec {
  readonly topic: string;
  readonly numPartitions: number;
  readonly replicationFactor: number;
  /** Topic settings to create the topic with, including `cleanup.policy`. All others are left to the brokers' defaults. */
  readonly configEntries: { readonly name: string; readonly value: string }[];
  /**
   * Names of the settings without which events would be lost. They are never omitted when the topic is created; others are omitted if the
   * brokers refuse them.
   */
  readonly required: readonly string[];
  /** Whether the service also reads the topic and therefore needs the right to read it. Topics without this flag are only written. */
  readonly isReadBack: boolean;
  /** Cleanup policy that an existing topic must have. */
  readonly cleanupPolicy: CleanupPolicy;
  /** Whether an existing topic must have `numPartitions` partitions. */
  readonly fixedPartitions: boolean;
  /** Name of the list that all the topic's events belong to; undefined for a topic that is not limited to one list. */
  readonly resource: string | undefined;
  /** Name of another topic with the same keys, which should have the same number of partitions; undefined if there is no such topic. */
  readonly copartitionedWith: string | undefined;
}

/** Names of the topics that the service writes. */
export interface TopicNames {
  /** Returns the full name of the topic with a list's events, such as `wine.wine-clubs` for the list `wine-clubs`. */
  readonly records: (resource: string) => string;
  /** Returns the full name of the topic with a list's status changes. `topic` is the name without the prefix (`TOPIC_PREFIX`). */
  readonly statusChanges: (statuses: { readonly topic: string }) => string;
  readonly deadLetters: string;
  readonly cursors: string;
  readonly signals: string;
  readonly ledger: string;
  readonly certificates: string;
  /** Name of the topic in which the instances of a fleet announce their state. Without a fleet, there is no such topic. */
  readonly fleet: string;
}

/**
 * Returns the names of all topics that the service writes. `prefix` is used for the topics of one account, `sharedPrefix` for the topics
 * that several accounts share.
 */
export function topicNames(prefix: string, sharedPrefix = prefix): TopicNames {
  return {
    records: (resource) => `${prefix}.${resource}`,
    statusChanges: ({ topic }) => `${prefix}.${topic}`,
    deadLetters: `${prefix}.dead-letters`,
    cursors: `${sharedPrefix}.cursors`,
    signals: `${sharedPrefix}.signals`,
    ledger: `${sharedPrefix}.ledger`,
    certificates: `${sharedPrefix}.certificates`,
    fleet: `${sharedPrefix}.fleet`,
  };
}

/** Registry subject of the schema of a topic's values. */
export function valueSubject(topic: string): string {
  return `${topic}-value`;
}

/** Registry subject of the schema of a topic's keys, if keys are written in Avro. */
export function keySubject(topic: string): string {
  return `${topic}-key`;
}

/** The properties of a list that determine its topics. */
export interface ListTopics {
  readonly name: string;
  /** Topic of the list's status changes, without the prefix; undefined if the list has no status fields. */
  readonly statuses?: { readonly topic: string } | undefined;
}

/** Returns the names of the lists' topics: first those with change events, then those with status changes. */
export function eventTopics(names: TopicNames, lists: readonly ListTopics[]): string[] {
  return [
    ...lists.map(({ name }) => names.records(name)),
    ...lists.flatMap(({ statuses }) => (statuses ? [names.statusChanges(statuses)] : [])),
  ];
}

interface TopicTableOptions {
  readonly prefix: string;
  /** Prefix of the topics of cursors, signals, ledger, certificates and fleet. Default: the value of `prefix`. */
  readonly sharedPrefix?: string;
  /** Whether several accounts are served. Default false. */
  readonly isFleet?: boolean;
  readonly lists: readonly ListTopics[];
  /** Number of partitions of each list's topic. A topic of status changes has as many, because its keys are those of the list. */
  readonly partitions: number;
  /** Replication factor of each topic, at least 1. */
  readonly replication: number;
}

/** Returns the specifications of all topics that the service writes. */
export function topicTable(options: TopicTableOptions): readonly TopicSpec[] {
  const { prefix, sharedPrefix, isFleet = false, lists, partitions, replication } = options;
  const names = topicNames(prefix, sharedPrefix);
  const { cursors, signals, ledger, certificates, fleet } = names;
  const spec = (
    topic: string,
    cleanupPolicy: CleanupPolicy,
    settings: Readonly<Record<string, number | string>>,
    numPartitions: number,
    resource?: string,
    copartitionedWith?: string,
  ): TopicSpec => ({
    topic,
    numPartitions,
    replicationFactor: replication,
    configEntries: [
      { name: 'cleanup.policy', value: cleanupPolicy },
      ...Object.entries(settings).map(([name, value]) => ({ name, value: String(value) })),
      // Batches keep the service's compression, which every client can read, even if the broker's default is another codec.
      { name: 'compression.type', value: 'producer' },
      // With three replicas each commit is on at least two brokers, so one broker may be unavailable.
      ...(replication >= 3 ? [{ name: 'min.insync.replicas', value: '2' }] : []),
    ],
    required: [
      'cleanup.policy',
      ...(settings === UNLIMITED_RETENTION ? Object.keys(UNLIMITED_RETENTION) : []),
    ],
    isReadBack: cleanupPolicy === 'compact' || topic === signals,
    cleanupPolicy,
    // An acknowledgement must follow its signal, and cursors and ledgers are read by scanning a single partition.
    fixedPartitions: [cursors, signals, ledger, certificates, fleet].includes(topic),
    resource,
    copartitionedWith,
  });

  const history = { 'min.compaction.lag.ms': 30 * DAY_MS };
  // To find a cursor the service reads the whole topic, so the topic has one partition and is compacted often.
  const oftenCompacted = { 'segment.ms': 10 * MINUTE_MS };
  return [
    ...lists.map(({ name }) => spec(names.records(name), 'compact', history, partitions, name)),
    ...lists.flatMap(({ name, statuses }) => {
      if (!statuses) return [];
      const topic = names.statusChanges(statuses);
      return spec(topic, 'delete', UNLIMITED_RETENTION, partitions, name, names.records(name));
    }),
    spec(names.deadLetters, 'delete', {}, 1),
    spec(cursors, 'compact', oftenCompacted, 1),
    spec(signals, 'delete', { 'retention.ms': 7 * DAY_MS }, 1),
    spec(certificates, 'delete', { 'retention.ms': 30 * DAY_MS }, 1),
    // Timestamps by one broker's clock: the age of a declaration must not depend on the clocks of two instances.
    spec(ledger, 'compact', { ...oftenCompacted, 'message.timestamp.type': 'LogAppendTime' }, 1),
    ...(isFleet ? [spec(fleet, 'compact', oftenCompacted, 1)] : []),
  ];
}
