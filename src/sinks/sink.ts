// What the pipeline sees of Kafka: a transactional sink to write to, and a log to read back.

/** A message on its way to a topic. */
export interface Message {
  readonly topic: string;
  /** Chooses the partition. */
  readonly key: string | null;
  /** The bytes of the key in Kafka. Default the text of `key` as UTF-8. */
  readonly keyBytes?: Buffer | undefined;
  /** Null is a tombstone. */
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds by which the timestamp of the record is later than that of the other records of the commit. Default 0. */
  readonly timestampOffset?: number;
}

/** What a commit wrote: by topic and partition, the offset after the commit's own marker. */
export type Ends = ReadonlyMap<string, ReadonlyMap<number, bigint>>;

/** Who a producer is to the brokers: each that is opened of a transactional id has a higher epoch than those before. */
export interface ProducerIdentity {
  readonly producerId: bigint;
  readonly epoch: number;
}

/**
 * What a commit waits for: that it is decided, or also that `read_committed` readers can see it, some ms later. What nobody
 * follows need not be waited for: whoever opens the next sink of the id finds it all the same.
 */
type CommitUntil = 'committed' | 'visible';

/**
 * Where messages go. All messages of one commit become readable at once, or none does; the cursor
 * that says how far the source was read is one of them.
 */
export interface TransactionalSink {
  /** Its newest. */
  readonly producer: ProducerIdentity;
  /**
   * One commit at a time. An error means that the outcome is not known: the sink is of no more use,
   * and what was committed has to be read back.
   *
   * @throws CellarstreamError `FENCED` when another sink of the id was opened since: leave the work to that one.
   * `COMMIT_FAILED` when a later try may do, with another sink; also where it can't be told whether this one was fenced
   * or took too long (`context.epoch`).
   *
   * @param until Default `visible`.
   */
  commit(messages: readonly Message[], until?: CommitUntil): Promise<Ends>;
  /**
   * Resolves when readers can see what was committed last: for who has something to do until then. It is committed all
   * the same, so that no wait takes longer than two seconds, and none is refused.
   */
  visible(): Promise<void>;
  /** Gives its connections back. */
  close(): Promise<void>;
}

/** Whether what is not committed, or was aborted, is read too. */
export type Isolation = 'committed' | 'uncommitted';

/** Of a partition: the offset of the first message there is, and that behind the last one to be read. */
export interface Bounds {
  readonly low: bigint;
  readonly high: bigint;
}

/** A sink that knows of all that was committed before it was opened. */
export interface FencedSink extends TransactionalSink {
  /**
   * By partition, where a topic begins and ends, with nothing missing of the transactions of this sink's id: a broker
   * that was replaced as leader, and has not heard of it, would tell of less.
   *
   * @param isolation Default of what is committed, as far as no transaction that is open stands before it.
   */
  bounds(topic: string, isolation?: Isolation): Promise<ReadonlyMap<number, Bounds>>;
}

/** A message as it stands in a topic. */
export interface KeyedMessage {
  readonly offset: string;
  readonly key: Buffer | null;
  /** Null is a tombstone. */
  readonly value: Buffer | null;
}

/** What is known of a topic: of all that stands before `next`. */
export interface Known<M> {
  /** By key, the newest message; none where that is a tombstone. */
  readonly newest: ReadonlyMap<string, M & { readonly value: Buffer }>;
  readonly next: bigint;
}

/** A committed message, as it was read back. */
export interface TailMessage {
  readonly partition: number;
  readonly offset: string;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
}

/** A committed message, and when it was written: ms since 1970, as text. */
export interface StampedMessage extends KeyedMessage {
  readonly timestamp: string;
}

/** By partition, the offset after the last one that a `read_committed` reader can see. */
export type Offsets = ReadonlyMap<number, bigint>;

export interface Tail {
  readonly topic: string;
  /** By partition, the first offset to read, which must be there; one that is not here is read from 0. */
  readonly from: Offsets;
  readonly to: Offsets;
  /**
   * Messages of one partition, in order; the next ones wait until it is done.
   */
  readonly onMessages: (messages: readonly TailMessage[]) => Promise<void>;
}

/**
 * What a task needs of Kafka. All of it throws CellarstreamError: `KAFKA_UNREACHABLE` where a later
 * try may do, else `KAFKA_REFUSED`.
 */
export interface TransactionalLog {
  /**
   * A sink of this transactional id. Opening it fences every older one and ends whatever transaction
   * that one had open, so that what is read back afterwards is final.
   *
   * @param own who the last sink of this process was: then an error with `context.epoch` says that another one was
   * opened since, and nothing has come of this.
   */
  open(transactionalId: string, own?: ProducerIdentity): Promise<FencedSink>;
  /** Names the cluster: another one has other offsets. */
  clusterId(): Promise<string>;
  /** Where the partitions of a topic end just now. */
  ends(topic: string): Promise<Offsets>;
  /**
   * Where they begin too: above 0 where records were deleted from the beginning. As any broker knows it, which may be
   * less than there is by now; see {@link FencedSink.bounds}.
   */
  bounds(topic: string, isolation?: Isolation): Promise<ReadonlyMap<number, Bounds>>;
  /**
   * Reads a topic from one set of offsets to another, `read_committed`, and resolves when all of it
   * has been handed over. What is gone meanwhile is an error that a later try may mend, with other offsets.
   */
  readTail(tail: Tail): Promise<void>;
  /**
   * The newest messages of a topic of one partition, by key, `read_committed`: of all before the end that `bounds` finds, at
   * least. All tasks of a process share what was read.
   */
  newest(topic: string, bounds: () => Promise<Bounds>): Promise<Known<StampedMessage>>;
}
