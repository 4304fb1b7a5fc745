// How failed operations are repeated: the pauses between attempts, and how long attempts go on. One table, so that they can be compared.

/** Pauses between attempts, in ms: the first one, which doubles with each further failure, and the longest. */
interface Pauses {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Pauses between attempts. Too short: a failing server gets more load. Too long: work resumes late. */
export const PAUSES = {
  /** Repeating a request to Kafka, until its limit in {@link KAFKA_LIMITS} is over. */
  kafkaRequest: { firstMs: 20, maxMs: 500 },
  /** Connecting again in order to fetch a topic. */
  kafkaFetch: { firstMs: 250, maxMs: 5_000 },
  /** Joining the group of a fleet again. */
  groupJoin: { firstMs: 500, maxMs: 500 },
  /** Setting the first offsets of a consumer group again, while another member is the leader and has not committed them. */
  groupOffsets: { firstMs: 250, maxMs: 250 },
  /** Restarting a task, a fleet, a reader of a topic or a member of a consumer group, or writing to the ledger again. */
  restart: { firstMs: 250, maxMs: 5_000 },
  /** Restarting a task or a reader of signals after an error that no retry is expected to resolve. */
  permanentError: { firstMs: 60_000, maxMs: 60_000 },
} as const satisfies Readonly<Record<string, Pauses>>;

/** Pauses of 10 ms for failures that pass within moments, at most a hundred; after them those of `PAUSES.kafkaRequest`. */
export const BRIEF_PAUSES = { ms: 10, count: 100 } as const;

/** How long attempts go on, in ms. */
interface Limit {
  readonly ms: number;
  /** Limit while no broker has responded at all. Default `ms`. Too large: commands report late that Kafka is unreachable. */
  readonly unreachableMs?: number;
}

/** How long requests to Kafka are repeated after failures that may pass. */
export const KAFKA_LIMITS = {
  /** Opening a producer, or delivering the messages of a transaction. Then the task restarts from what was committed. */
  transaction: { ms: 30_000 },
  /** Committing a transaction whose messages have been delivered. */
  commit: { ms: 15_000 },
  /** Aborting a transaction. Opening the next producer of the transactional id aborts it as well. */
  abort: { ms: 2_000 },
  /** Waiting until readers can see a commit, which is decided in any case. */
  visible: { ms: 2_000 },
  /** Sending a record without a transaction. */
  send: { ms: 30_000 },
  /** Requests about topics and groups. Too small: a new topic, or a leader or coordinator that is being elected, is an error. */
  query: { ms: 10_000 },
  /** Requests of commands and readers about topics. */
  readerQuery: { ms: 10_000, unreachableMs: 4_000 },
  /** Requests of tasks about topics, and those for the rights of this user. Short, because a task restarts after an error. */
  taskQuery: { ms: 5_000 },
  /** First requests of a start. Too large: the caller learns late that Kafka is unreachable. */
  startQuery: { ms: 1_000 },
  /** Finding out why a consumer group has no coordinator, which only completes the message of an error. */
  errorDetail: { ms: 2_000 },
} as const satisfies Readonly<Record<string, Limit>>;

/**
 * How long a failure may last before it is final although it may pass, in ms, counted from its first occurrence without a success in
 * between.
 */
export const LASTING_MS = {
  /**
   * Too few brokers are available. Too small: the election of a new leader fails transactions. Too large: the log reports late why nothing
   * is published.
   */
  lackingBrokers: 5_000,
  /** Brokers do not know a topic that is written to. Too small: a new topic counts as deleted. */
  unknownTopic: 5_000,
  /** Brokers refuse the tokens of a login. A broker refuses valid ones until it has fetched the signing key. */
  refusedToken: 15_000,
  /** The same once a token was accepted: then the identity provider is more likely at fault than the settings. */
  refusedProvenToken: 600_000,
} as const;

/**
 * Number of consecutive attempts to fetch a topic, some eight seconds, that may fail because brokers do not know the topic, or because they
 * do not agree on a partition's leader and outages are not retried. Too small: a new topic, or an election of a leader, is an error.
 */
export const FETCH_RETRIES = 5;

/** Number of retries in kafkajs before it throws an error. */
export const KAFKAJS_RETRIES = {
  /** Some four seconds. */
  service: 7,
  /** About one second, for commands that only find out whether Kafka is reachable. */
  command: 5,
} as const;

/** Returns the pause after this number of consecutive failures (1 for the first), in ms. */
export function pauseMs({ firstMs, maxMs }: Pauses, failures: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
}

/**
 * Returns a function that is called after each attempt with whether a certain failure occurred, and returns for how long the failure has
 * lasted, in ms: 0 at its first occurrence, and after an attempt without it.
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
