import type { AbortedTransaction } from './record-batches.ts';

/** What a broker answers to a fetch of a partition. */
export interface PartitionAnswer {
  readonly partition: number;
  /** Of the protocol; 0 where nothing is wrong. */
  readonly errorCode: number;
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
  let at = 0;
  const int16 = () => bytes.readInt16BE((at += 2) - 2);
  const int32 = () => bytes.readInt32BE((at += 4) - 4);
  const int64 = () => bytes.readBigInt64BE((at += 8) - 8);
  const view = (length: number) => bytes.subarray(at, (at += Math.max(0, length)));
  const array = <T>(one: () => T): T[] => {
    const items: T[] = [];
    for (let left = int32(); left > 0; left--) items.push(one());
    return items;
  };

  const aborted = () => ({ producerId: int64(), firstOffset: int64() });
  const partition = (): PartitionAnswer => {
    const head = { partition: int32(), errorCode: int16() };
    int64(); // the high watermark
    const lastStableOffset = int64();
    int64(); // where the log begins
    return { ...head, lastStableOffset, aborted: array(aborted), records: view(int32()) };
  };
  const clientSideThrottleTime = int32();
  const errorCode = int16();
  int32(); // the session, of which we have none
  const topics = array(() => {
    view(int16()); // its name
    return array(partition);
  });
  return { clientSideThrottleTime, errorCode, partitions: topics.flat() };
}
