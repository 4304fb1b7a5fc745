import { protocolReader } from '../client/protocol-reader.ts';
import type { AbortedTransaction } from './record-batches.ts';

/** What a broker answers to a fetch of a partition. */
export interface PartitionAnswer {
  readonly partition: number;
  /** Of the protocol; 0 where nothing is wrong. */
  readonly errorCode: number;
  /** The end of what all replicas in sync have. */
  readonly highWatermark: bigint;
  /** The end of what a `read_committed` reader sees. */
  readonly lastStableOffset: bigint;
  readonly aborted: readonly AbortedTransaction[];
  /** Batches of records, the last one perhaps cut short. */
  readonly records: Buffer;
}

export interface FetchAnswer {
  /** How long the broker wants to be left alone, ms: kafkajs' connection heeds it. */
  readonly clientSideThrottleTime: number;
  readonly errorCode: number;
  readonly partitions: readonly PartitionAnswer[];
}

/** Reads the answer to a fetch of one topic, version 10: https://kafka.apache.org/protocol#The_Messages_Fetch */
export function fetchAnswer(bytes: Buffer): FetchAnswer {
  const answer = protocolReader(bytes);
  const aborted = () => ({ producerId: answer.int64(), firstOffset: answer.int64() });
  const partition = (): PartitionAnswer => {
    const head = { partition: answer.int32(), errorCode: answer.int16() };
    const ends = { highWatermark: answer.int64(), lastStableOffset: answer.int64() };
    answer.int64(); // where the log begins
    return { ...head, ...ends, aborted: answer.array(aborted), records: answer.bytes() };
  };
  const clientSideThrottleTime = answer.int32();
  const errorCode = answer.int16();
  answer.int32(); // the session, of which we have none
  const topics = answer.array(() => {
    answer.string(); // its name
    return answer.array(partition);
  });
  return { clientSideThrottleTime, errorCode, partitions: topics.flat() };
}
