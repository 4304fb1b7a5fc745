import type { KeyedMessage, Known } from './newest-by-key.ts';
import type { Bounds, FencedSink, Isolation, ProducerIdentity } from './sink.ts';

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
