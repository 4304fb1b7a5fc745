// The topics that are written: their names, and what Kafka is to do with them.

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Settings of a topic whose messages do not come again. */
const FOR_EVER = { 'retention.ms': -1, 'retention.bytes': -1 };

/** How Kafka makes room: by key, or by age. On another one a topic loses what it's there to keep. */
type CleanupPolicy = 'compact' | 'delete';

/** A topic as it is created. */
export interface TopicSpec {
  readonly topic: string;
  readonly numPartitions: number;
  readonly replicationFactor: number;
  /** All settings, `cleanup.policy` among them, that differ from the broker's defaults. */
  readonly configEntries: { readonly name: string; readonly value: string }[];
  /**
   * Names of the settings without which events would be lost: the topic is not created without them. The others are wishes, which
   * are left out where the brokers refuse them.
   */
  readonly required: readonly string[];
  /** Whether the service itself reads it: of the others it needs no right to read. */
  readonly isReadBack: boolean;
  /** What an existing topic of the name must have. */
  readonly cleanupPolicy: CleanupPolicy;
  /** Whether an existing topic must have just `numPartitions`. */
  readonly fixedPartitions: boolean;
  /** The resource whose events alone are in it; undefined where it is of all of them. */
  readonly resource: string | undefined;
  /** The topic that has the same keys, and is to have as many partitions. */
  readonly keyedAs: string | undefined;
}

/** The names under one prefix. */
export interface TopicNames {
  /** A resource's events: `wine.wine-clubs`. */
  readonly records: (resource: string) => string;
  readonly orderStatusChanges: string;
  readonly deadLetters: string;
  readonly cursors: string;
  readonly signals: string;
  readonly ledger: string;
  readonly certificates: string;
  /** There where several accounts are served. */
  readonly fleet: string;
}

/** The names of all topics: those of an account under its prefix, those that accounts share under theirs. */
export function topicNames(prefix: string, sharedPrefix = prefix): TopicNames {
  return {
    records: (resource) => `${prefix}.${resource}`,
    orderStatusChanges: `${prefix}.order-status-changes`,
    deadLetters: `${prefix}.dead-letters`,
    cursors: `${sharedPrefix}.cursors`,
    signals: `${sharedPrefix}.signals`,
    ledger: `${sharedPrefix}.ledger`,
    certificates: `${sharedPrefix}.certificates`,
    fleet: `${sharedPrefix}.fleet`,
  };
}

/** Where a registry keeps the schema of a topic's values. */
export function valueSubject(topic: string): string {
  return `${topic}-value`;
}

/** Where a registry keeps the schema of a topic's keys, if they are in Avro. */
export function keySubject(topic: string): string {
  return `${topic}-key`;
}

/** What the topics of a service depend on. */
interface TopicTableOptions {
  readonly prefix: string;
  /** Of cursors, signals, ledger, certificates and fleet. Default `prefix`. */
  readonly sharedPrefix?: string;
  /** Whether several accounts are served. Default no. */
  readonly isFleet?: boolean;
  readonly resources: readonly string[];
  /** Partitions of the resources' topics and of the status changes, which go by the same keys. */
  readonly partitions: number;
  /** Copies of each topic, at least 1. */
  readonly replication: number;
}

/** Every topic, with its settings. Without `orders` there are no status changes. */
export function topicTable(options: TopicTableOptions): readonly TopicSpec[] {
  const { prefix, sharedPrefix, isFleet = false, resources, partitions, replication } = options;
  const names = topicNames(prefix, sharedPrefix);
  const { cursors, signals, ledger, certificates, fleet } = names;
  const shared = [cursors, signals, ledger, certificates, fleet];
  const isOfOrders = (topic: string) => topic === names.orderStatusChanges;
  const spec = (
    topic: string,
    cleanupPolicy: CleanupPolicy,
    settings: Readonly<Record<string, number | string>>,
    numPartitions: number,
  ): TopicSpec => ({
    topic,
    numPartitions,
    replicationFactor: replication,
    configEntries: [
      { name: 'cleanup.policy', value: cleanupPolicy },
      ...Object.entries(settings).map(([name, value]) => ({ name, value: String(value) })),
      // A broker may compress by default: batches stay as they were sent, in what every client can read.
      { name: 'compression.type', value: 'producer' },
      // With three copies a commit is on two brokers at least, and one broker can be away.
      ...(replication >= 3 ? [{ name: 'min.insync.replicas', value: '2' }] : []),
    ],
    required: ['cleanup.policy', ...(settings === FOR_EVER ? Object.keys(FOR_EVER) : [])],
    isReadBack: cleanupPolicy === 'compact' || topic === signals,
    cleanupPolicy,
    // An acknowledgement is behind its request; cursors and ledgers are found by reading one partition through.
    fixedPartitions: shared.includes(topic),
    resource:
      resources.find((each) => topic === names.records(each)) ??
      (isOfOrders(topic) ? 'orders' : undefined),
    keyedAs: isOfOrders(topic) ? names.records('orders') : undefined,
  });

  const history = { 'min.compaction.lag.ms': 30 * DAY_MS };
  // A cursor is found by reading its topic through: one partition, compacted often.
  const oftenCompacted = { 'segment.ms': 10 * MINUTE_MS };
  return [
    ...resources.map((resource) => spec(names.records(resource), 'compact', history, partitions)),
    ...(resources.includes('orders')
      ? [spec(names.orderStatusChanges, 'delete', FOR_EVER, partitions)]
      : []),
    spec(names.deadLetters, 'delete', {}, 1),
    spec(cursors, 'compact', oftenCompacted, 1),
    spec(signals, 'delete', { 'retention.ms': 7 * DAY_MS }, 1),
    spec(certificates, 'delete', { 'retention.ms': 30 * DAY_MS }, 1),
    // How long ago something was declared is told by the clock of one broker, not by those of two instances.
    spec(ledger, 'compact', { ...oftenCompacted, 'message.timestamp.type': 'LogAppendTime' }, 1),
    ...(isFleet ? [spec(fleet, 'compact', oftenCompacted, 1)] : []),
  ];
}
