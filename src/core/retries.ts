// How failed operations are repeated: the pauses between attempts, and how long attempts go on. One table, so that they can be compared.

/**
 * Pauses between the attempts of an operation, in ms: the first is `firstMs`, and each further failure doubles it up to `maxMs`. The
 * operator `backoff` takes a random fraction of each pause.
 */
interface Pauses {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Pauses between attempts, by operation. If a pause is too short, a failing server receives more load; if too long, work resumes late. */
export const PAUSES = {
  /** Pauses before a failed request to Kafka is repeated. The limit for all attempts is in {@link KAFKA_LIMITS}. */
  kafkaRequest: { firstMs: 20, maxMs: 500 },
  /** Pauses before a reader of a topic opens a new connection, after it failed to connect or to fetch messages. */
  kafkaFetch: { firstMs: 250, maxMs: 5_000 },
  /** Pause before an instance joins the Kafka group of its fleet again after a temporary error. */
  groupJoin: { firstMs: 500, maxMs: 500 },
  /**
   * Pause before a member of a new consumer group that begins at `latest` checks again whether the leader has committed the first offsets.
   */
  groupOffsets: { firstMs: 250, maxMs: 250 },
  /**
   * Pauses before a larger step is repeated after a temporary error, such as the claim of an account, the restart of a task, joining a
   * consumer group, or a write to the ledger.
   */
  restart: { firstMs: 250, maxMs: 5_000 },
  /** Pause before restarting a task or a reader of signals after an error that a retry probably does not resolve. */
  permanentError: { firstMs: 60_000, maxMs: 60_000 },
} as const satisfies Readonly<Record<string, Pauses>>;

/**
 * Pauses before a request to Kafka is repeated after a failure that usually ends within moments: `count` pauses of `ms` ms, and then those
 * of `PAUSES.kafkaRequest`.
 */
export const BRIEF_PAUSES = { ms: 10, count: 100 } as const;

/** Maximum time for all attempts of an operation together, in ms. */
interface Limit {
  readonly ms: number;
  /**
   * Maximum time for all attempts while no broker has responded, in ms. Default: `ms`. If it is too large, commands report late that Kafka
   * is unreachable.
   */
  readonly unreachableMs?: number;
}

/** Time limits for requests to Kafka, by operation. Until the limit, a request is repeated after failures that a retry may resolve. */
export const KAFKA_LIMITS = {
  /**
   * Time limit for opening a producer, and for delivering the messages of a transaction. After that time, the task restarts from what was
   * committed.
   */
  transaction: { ms: 30_000 },
  /** Time limit for committing a transaction whose messages have been delivered. */
  commit: { ms: 15_000 },
  /**
   * Time limit for aborting a transaction. If it passes, the transaction stays open until the next producer of the same transactional id is
   * opened, which aborts it.
   */
  abort: { ms: 2_000 },
  /** Time limit for the wait until readers can see a commit. The transaction is committed even if the wait ends early. */
  visible: { ms: 2_000 },
  /** Time limit for sending messages without a transaction. */
  send: { ms: 30_000 },
  /**
   * Time limit for requests that create topics, read their settings, or describe a consumer group. If it is too small, requests fail while
   * a topic is being set up or a leader is being elected.
   */
  query: { ms: 10_000 },
  /**
   * Time limits for requests that commands and topic readers send about topics and groups. `unreachableMs` applies as long as no broker has
   * responded.
   */
  readerQuery: { ms: 10_000, unreachableMs: 4_000 },
  /** Time limit for a task's requests about its topics and this client's rights on them. Short, because a task restarts after an error. */
  taskQuery: { ms: 5_000 },
  /** Time limit for the first requests to Kafka when the service starts. If it is too large, an unreachable Kafka is reported late. */
  startQuery: { ms: 1_000 },
  /** Time limit for finding out why a consumer group has no coordinator. The result only adds details to an error message. */
  errorDetail: { ms: 2_000 },
} as const satisfies Readonly<Record<string, Limit>>;

/**
 * How long each kind of failure is retried until it counts as final, in ms, measured from the first of consecutive failures of that kind.
 */
export const LASTING_MS = {
  /**
   * How long an operation is retried while brokers report `COORDINATOR_NOT_AVAILABLE` or `NOT_ENOUGH_REPLICAS`, in ms. If it is too small,
   * transactions fail during the election of a partition leader. If it is too large, the log reports late why nothing is published.
   */
  lackingBrokers: 5_000,
  /**
   * How long brokers may report that a topic does not exist before it counts as deleted, in ms. If it is too small, a topic that was just
   * created counts as deleted.
   */
  unknownTopic: 5_000,
  /**
   * How long brokers may refuse this process's OAuth tokens until the refusal is final, in ms. Applies until a token has been accepted. A
   * broker refuses valid tokens until it has fetched the identity provider's key.
   */
  refusedToken: 15_000,
  /**
   * How long brokers may refuse this process's OAuth tokens until the refusal is final, in ms. Applies once a token has been accepted.
   * Longer than `refusedToken`, because the cause is then probably the identity provider, not a setting.
   */
  refusedProvenToken: 600_000,
} as const;

/**
 * Maximum number of consecutive retries of a fetch (some eight seconds) while brokers report that the topic does not exist. With
 * `retriesOutages: false`, also while brokers report that they do not lead the partition. If it is too small, fetches fail while a topic is
 * new or a partition leader is being elected.
 */
export const FETCH_RETRIES = 5;

/** Maximum number of retries that kafkajs makes before it throws an error. */
export const KAFKAJS_RETRIES = {
  /** Maximum number of retries of one request of the running service. They take about four seconds in all. */
  service: 7,
  /** Maximum number of retries of one request of a command, or of the check when the service starts. They take about one second in all. */
  command: 5,
} as const;

/** Returns the pause (or the upper bound of a random pause) after `failures` consecutive failures, in ms. */
export function pauseMs({ firstMs, maxMs }: Pauses, failures: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
}

/**
 * Returns a function that must be called after each attempt. It returns the time since the first of the consecutive failures, in ms; 0 if
 * the attempt did not fail.
 *
 * @param now Returns the time of a monotonic clock, in ms.
 */
export function lasting(now = () => performance.now()): (isFailing: boolean) => number {
  let since: number | undefined;
  return (isFailing) => {
    since = isFailing ? (since ?? now()) : undefined;
    return since === undefined ? 0 : now() - since;
  };
}
