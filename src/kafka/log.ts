// Types for reading topics: offsets, ranges and messages.

/** Whether a reader of a topic sees committed messages alone, or also those of open and aborted transactions. */
export type Isolation = 'committed' | 'uncommitted';

/** A partition's first offset (`low`) and the offset after the last message that a reader can see (`high`). */
export interface Bounds {
  readonly low: bigint;
  readonly high: bigint;
}

/** A message read from a topic, without its partition. */
export interface KeyedMessage {
  readonly offset: string;
  readonly key: Buffer | null;
  /** Null for a tombstone. */
  readonly value: Buffer | null;
}

/** Content of a compacted topic, read up to but not including the offset `next`. */
export interface Known<M> {
  /** Newest message by key, without keys whose newest message is a tombstone. */
  readonly newest: ReadonlyMap<string, M & { readonly value: Buffer }>;
  readonly next: bigint;
}

/** A committed message and its partition. */
export interface TailMessage extends KeyedMessage {
  readonly partition: number;
}

/** A committed message and its timestamp in epoch ms, as text. */
export interface StampedMessage extends KeyedMessage {
  readonly timestamp: string;
}

/** An offset for each partition. */
export type Offsets = ReadonlyMap<number, bigint>;

/** A range of a topic to read, and the callback for its messages. */
export interface TailRange {
  readonly topic: string;
  /** First offset to read, by partition; default 0. Messages from there on must not have been deleted. */
  readonly from: Offsets;
  readonly to: Offsets;
  /** Called with messages of one partition, in order. The next call waits until the promise has resolved. */
  readonly onMessages: (messages: readonly TailMessage[]) => Promise<void>;
}
