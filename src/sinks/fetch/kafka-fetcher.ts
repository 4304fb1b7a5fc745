// Fetch requests for a topic over kafkajs' connections.

import type { Kafka } from 'kafkajs';
import type { Isolation, Offsets } from '../sink.ts';
import { endConnection } from '../client/connection.ts';
import { clusterOf } from '../client/kafkajs-inner.ts';
import type { ConnectionPool } from '../client/kafkajs-inner.ts';
import { ERROR, protocolError } from '../client/protocol-errors.ts';
import { array, int32, int64, int8, protocolReader, string } from '../client/protocol.ts';
import { ISOLATION } from '../client/topic-calls.ts';
import type { AbortedTransaction } from './record-batches.ts';

/** A topic's partitions, fetched from the brokers that lead them. */
export interface Fetcher {
  /** By partition, the id of its leader, of metadata that are a few minutes old at most. */
  leaders(): Promise<ReadonlyMap<number, number>>;
  /**
   * What these partitions hold from these offsets on, as far as it is to be read and fits into an answer.
   * The first of them is answered with a batch at least, however large. A broker that has nothing new
   * waits for it, see {@link FetcherOptions.waitMs}.
   *
   * @throws kafkajs' errors, but those of single partitions, which are in their answers.
   */
  fetch(leader: number, offsets: Offsets): Promise<readonly PartitionAnswer[]>;
  /** A fetch that was sent is an error then, and so is every call behind it. */
  close(): Promise<void>;
}

export interface FetcherOptions {
  /** Whether what is not committed, or was aborted, is read too. Default what is committed alone. */
  readonly isolation?: Isolation | undefined;
  /**
   * How long a broker waits for something new, ms. It is asked for other partitions only behind that. Default 250.
   */
  readonly waitMs?: number | undefined;
}

/** In an answer, of one partition and in all. */
const PARTITION_BYTES = 2 ** 20;
const ANSWER_BYTES = 4 * 2 ** 20;
const WAIT_MS = 250;
/** How old metadata may become: partitions may be added. */
const METADATA_MAX_AGE_MS = 300_000;

/**
 * Connects to Kafka to fetch from a topic without a group: kafkajs can't, in what it offers, and a
 * group's first join takes seconds. So this takes the connections of a cluster out of it, which its consumers have
 * too. Request and answer are our own: kafkajs leaves out where batches end that compaction has emptied.
 *
 * @throws kafkajs' errors.
 */
export async function openFetcher(
  kafka: Kafka,
  topic: string,
  { isolation = 'committed', waitMs = WAIT_MS }: FetcherOptions = {},
): Promise<Fetcher> {
  const cluster = clusterOf(kafka, {
    metadataMaxAge: METADATA_MAX_AGE_MS,
    allowAutoTopicCreation: false,
  });
  try {
    await cluster.connect();
    await cluster.addTargetTopic(topic);
  } catch (error) {
    await cluster.disconnect().catch(() => undefined); // what came before it says more
    throw error;
  }
  const calls = new Set<Promise<unknown>>();
  const asked = new Set<ConnectionPool>();
  let isClosed = false;
  const closed = () => new Error(`Closed connection: it read ${topic}`);
  const expectOpen = () => {
    if (isClosed) throw closed();
  };
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    expectOpen();
    const answer = work();
    calls.add(answer);
    return answer.finally(() => calls.delete(answer));
  };
  const leaders = async () => {
    await cluster.refreshMetadataIfNecessary();
    const partitions = cluster.findTopicPartitionMetadata(topic);
    return new Map(partitions.map(({ partitionId, leader }) => [partitionId, leader]));
  };
  const fetch = async (leader: number, offsets: Offsets) => {
    const broker = await cluster.findBroker({ nodeId: String(leader) });
    expectOpen();
    asked.add(broker.connectionPool);
    const buffer = fetchBody(topic, offsets, isolation, waitMs);
    const encode = () => Promise.resolve({ buf: buffer, buffer });
    const answer = await broker.connectionPool.send<FetchAnswer>({
      request: { ...FETCH, encode },
      response: { decode: fetchAnswer, parse: (decoded) => decoded },
    });
    if (answer.errorCode !== 0) throw protocolError(answer.errorCode, `Fetch of ${topic}`);
    return answer.partitions;
  };
  return {
    leaders: () => call(leaders),
    fetch: (leader, offsets) => call(() => fetch(leader, offsets)),
    close: async () => {
      isClosed = true;
      // kafkajs waits for the answers of brokers, which wait for something new.
      for (const each of [...asked].flatMap(({ pool }) => pool)) {
        if (each.isConnected()) endConnection(each, closed());
      }
      await cluster.disconnect();
      await Promise.allSettled(calls);
      await cluster.disconnect(); // kafkajs connects anew for what it is asked meanwhile
    },
  };
}

/** The newest version whose answer can't send a reader to another replica: https://kafka.apache.org/protocol#The_Messages_Fetch */
const FETCH = { apiName: 'Fetch', apiKey: 1, apiVersion: 10 } as const;

function fetchBody(topic: string, offsets: Offsets, isolation: Isolation, waitMs: number): Buffer {
  const NO_REPLICA = int32(-1);
  const NO_SESSION = Buffer.concat([int32(0), int32(-1)]);
  const ANY_EPOCH = int32(-1);
  const NO_LOG_START = int64(-1n);
  return Buffer.concat([
    NO_REPLICA,
    int32(waitMs),
    int32(1), // byte at least
    int32(ANSWER_BYTES),
    int8(ISOLATION[isolation]),
    NO_SESSION,
    array([topic], (name) =>
      Buffer.concat([
        string(name),
        array([...offsets], ([partition, offset]) =>
          Buffer.concat([
            int32(partition),
            ANY_EPOCH,
            int64(offset),
            NO_LOG_START,
            int32(PARTITION_BYTES),
          ]),
        ),
      ]),
    ),
    array([], int32), // nothing to forget
  ]);
}

export function isOutOfRange({ errorCode }: PartitionAnswer): boolean {
  return errorCode === ERROR.OFFSET_OUT_OF_RANGE;
}

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

interface FetchAnswer {
  /** How long the broker wants to be left alone, ms: kafkajs' connection heeds it. */
  readonly clientSideThrottleTime: number;
  readonly errorCode: number;
  readonly partitions: readonly PartitionAnswer[];
}

/** Reads the answer to a fetch of one topic. */
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
