// Types for reading topics: offsets, ranges and messages.

/** Which messages a reader of a topic sees: only committed ones, or also those of open and aborted transactions. */
export type Isolation = 'committed' | 'uncommitted';

/** A partition's first offset (`low`), and the offset after the last message that a reader can see (`high`). */
export interface Bounds {
  readonly low: bigint;
  readonly high: bigint;
}

/** Bounds of each partition of a topic. */
export type TopicBounds = ReadonlyMap<number, Bounds>;

/** A message that was read from a topic, without the number of its partition. */
export interface KeyedMessage {
  readonly offset: string;
  readonly key: Buffer | null;
  /** Content of the message; null for a tombstone. */
  readonly value: Buffer | null;
}

/** Newest messages of a compacted topic, which has been read from its beginning up to but not including the offset `next`. */
export interface Known<M> {
  /** Newest message of each key. Keys whose newest message is a tombstone are left out. */
  readonly newest: ReadonlyMap<string, M & { readonly value: Buffer }>;
  readonly next: bigint;
}

/** A committed message with the number of its partition. */
export interface TailMessage extends KeyedMessage {
  readonly partition: number;
}

/** A committed message with its timestamp (epoch ms as text). */
export interface StampedMessage extends KeyedMessage {
  readonly timestamp: string;
}

export type Offsets = ReadonlyMap<number, bigint>;

/** A range of a topic's offsets to read, and the callback for the messages. */
export interface TailRange {
  readonly topic: string;
  /** First offset to read, by partition. Default 0. Reading fails if retention has deleted messages at or after this offset. */
  readonly from: Offsets;
  readonly to: Offsets;
  /** Called with messages of one partition, in the order of their offsets. The next call waits until the returned promise has resolved. */
  readonly onMessages: (messages: readonly TailMessage[]) => Promise<void>;
}
