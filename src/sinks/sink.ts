import type { Bounds, Isolation, Known, Offsets, StampedMessage, TailRange } from '../kafka/log.ts';

// Interfaces through which the pipeline uses Kafka: a transactional sink to write to, and a log to read back.

/** A message to be written to a topic. */
export interface Message {
  readonly topic: string;
  /** Key as text, which determines the partition; null for a message without a key. */
  readonly key: string | null;
  /** Key as the bytes to write. Default: `key` encoded as UTF-8. */
  readonly keyBytes?: Buffer | undefined;
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Difference between this message's timestamp and that of the commit, in ms. Default 0. */
  readonly timestampOffset?: number;
}

/**
 * End offset of a commit by topic and partition: the offset after the commit's transaction marker. A topic is left out if the brokers did
 * not report the offset for one of its partitions.
 */
export type CommitEnds = ReadonlyMap<string, ReadonlyMap<number, bigint>>;

/** Identity of a producer for the brokers. Each opening of a transactional id raises the epoch, or changes the producer id. */
export interface ProducerIdentity {
  readonly producerId: bigint;
  readonly epoch: number;
}

/** Writes messages to Kafka in transactions: either all messages of a commit become readable or none of them. */
export interface TransactionalSink {
  readonly producer: ProducerIdentity;
  /**
   * Commits messages in one transaction. Resolves when the transaction is committed, some ms before `read_committed` readers can see its
   * messages. Only one commit may be in flight. After an error the sink can't be used again, and the caller has to read the topics to find
   * out whether the messages were committed.
   *
   * @throws CellarstreamError:
   * - `FENCED` if another sink of the transactional id has certainly been opened since;
   * - `COMMIT_FAILED` if a retry with another sink may succeed. The error has `context.epoch` if it is unknown whether this sink was
   *   fenced;
   * - other codes, such as `TOPIC_CHANGED` or `TOPIC_SETTINGS`, if a retry alone can't succeed.
   */
  commit(messages: readonly Message[]): Promise<CommitEnds>;
  /** Resolves when `read_committed` readers can see the last commit, or after two seconds. Never rejects. */
  awaitVisible(): Promise<void>;
  close(): Promise<void>;
}

/** A sink that has fenced all earlier sinks of its transactional id, and can read everything that they committed. */
export interface FencedSink extends TransactionalSink {
  /**
   * Returns the first and the end offset of each partition of a topic. The responding partition leaders know every transaction that this
   * transactional id committed before this sink was opened. The offsets of {@link TransactionalLog.bounds} may be older.
   *
   * @param isolation Default `committed`: the end offset is before the first open transaction, even one of another transactional id.
   */
  bounds(topic: string, isolation?: Isolation): Promise<ReadonlyMap<number, Bounds>>;
}

/**
 * Functions for reading and writing Kafka that a task uses. All of them throw CellarstreamError: `KAFKA_UNREACHABLE` if a retry may
 * succeed, otherwise another code, such as `KAFKA_REFUSED`.
 */
export interface TransactionalLog {
  /**
   * Opens a sink with this transactional id. Opening fences every older sink of the id and ends its open transaction, so messages that are
   * read back afterwards are final.
   *
   * @param own Identity of this process's previous sink. Opening fails with an error that has `context.epoch` if another sink was opened
   * since, or if the previous sink's transaction timed out.
   */
  open(transactionalId: string, own?: ProducerIdentity): Promise<FencedSink>;
  /** Returns the id of the cluster. A stored offset is valid only in the cluster in which it was stored. */
  clusterId(): Promise<string>;
  ends(topic: string): Promise<Offsets>;
  /** Returns the first and the end offset of each partition. The offsets may be outdated; those of {@link FencedSink.bounds} are not. */
  bounds(topic: string, isolation?: Isolation): Promise<ReadonlyMap<number, Bounds>>;
  /**
   * Reads the committed messages of a range of offsets. Resolves when all of them have been handled. Throws an error if part of the range
   * is deleted meanwhile; a retry with other offsets may succeed.
   */
  readTail(tail: TailRange): Promise<void>;
  /**
   * Returns the newest committed message of each key of a topic with one partition, after reading at least up to the end offset that
   * `bounds` returns. All tasks of a process share one read of the topic.
   */
  compacted(topic: string, bounds: () => Promise<Bounds>): Promise<Known<StampedMessage>>;
}
