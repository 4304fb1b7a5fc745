import type { Bounds, Isolation, Known, Offsets, StampedMessage, TailRange } from '../kafka/log.ts';

// Interfaces through which the pipeline uses Kafka: a transactional sink to write to, and a log to read back.

/** A message to be written to a topic. */
export interface Message {
  readonly topic: string;
  /** Key as text, which determines the partition; null for a message without a key. */
  readonly key: string | null;
  /** Bytes of the key in Kafka. Default: `key` as UTF-8. */
  readonly keyBytes?: Buffer | undefined;
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** How much later this message's timestamp is than that of the commit, in ms. Default 0. */
  readonly timestampOffset?: number;
}

/** End of a commit by topic and partition: the offset after its transaction marker. */
export type CommitEnds = ReadonlyMap<string, ReadonlyMap<number, bigint>>;

/** Identity of a producer towards the brokers. Each producer that opens a transactional id gets a higher epoch than the one before. */
export interface ProducerIdentity {
  readonly producerId: bigint;
  readonly epoch: number;
}

/**
 * When a commit resolves: once it is decided (`committed`), or once `read_committed` readers can see it, some ms later (`visible`). The
 * next sink of the same transactional id finds the messages in either case.
 */
export type CommitUntil = 'committed' | 'visible';

/**
 * Writes messages to Kafka in transactions. All messages of one commit become readable at once, or none does. One of them is the cursor,
 * which says how far the source was read.
 */
export interface TransactionalSink {
  readonly producer: ProducerIdentity;
  /**
   * Commits messages in one transaction; one commit at a time. After an error the outcome is unknown: the sink can't be used again, and
   * what was committed has to be read back.
   *
   * @param until Default `visible`.
   * @throws CellarstreamError `FENCED` if another sink of the transactional id was opened since. `COMMIT_FAILED` if a retry with another
   * sink may succeed, also if it is unknown whether this sink was fenced (`context.epoch`).
   */
  commit(messages: readonly Message[], until?: CommitUntil): Promise<CommitEnds>;
  /**
   * Resolves when readers can see the last commit, or after two seconds; never rejects. For callers that have committed with `until`
   * `committed`.
   */
  awaitVisible(): Promise<void>;
  close(): Promise<void>;
}

/** A sink that has fenced all earlier sinks of its transactional id, and can find everything that they committed. */
export interface FencedSink extends TransactionalSink {
  /**
   * Returns the first and the end offset of each partition of a topic, with all transactions of this sink's transactional id included. (An
   * ordinary request may reach a former leader, which does not know of its successor and reports an earlier end.)
   *
   * @param isolation Default `committed`: the end is before the first open transaction.
   */
  bounds(topic: string, isolation?: Isolation): Promise<ReadonlyMap<number, Bounds>>;
}

/**
 * The functions of Kafka that a task uses. All of them throw CellarstreamError: `KAFKA_UNREACHABLE` if a retry may succeed, otherwise
 * `KAFKA_REFUSED`.
 */
export interface TransactionalLog {
  /**
   * Opens a sink of this transactional id. That fences every older sink and ends its open transaction, so that what is read back afterwards
   * is final.
   *
   * @param own Identity of this process's previous sink. If another sink was opened since, the call has no effect and throws an error with
   * `context.epoch`.
   */
  open(transactionalId: string, own?: ProducerIdentity): Promise<FencedSink>;
  /** Returns the id of the cluster: stored offsets are valid only in the same cluster. */
  clusterId(): Promise<string>;
  ends(topic: string): Promise<Offsets>;
  /**
   * Returns the first and the end offset of each partition. Any broker responds, possibly with outdated offsets; compare {@link
   * FencedSink.bounds}.
   */
  bounds(topic: string, isolation?: Isolation): Promise<ReadonlyMap<number, Bounds>>;
  /**
   * Reads the committed messages of a range; resolves when all have been handled. If part of the range is deleted meanwhile it throws an
   * error, after which a retry with other offsets may succeed.
   */
  readTail(tail: TailRange): Promise<void>;
  /**
   * Returns the newest committed message of each key of a topic with one partition, at least up to the end that `bounds` returns. All tasks
   * of a process share one read of the topic.
   */
  compacted(topic: string, bounds: () => Promise<Bounds>): Promise<Known<StampedMessage>>;
}
