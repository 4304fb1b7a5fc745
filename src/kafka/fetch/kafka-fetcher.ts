// Fetch requests for a topic over kafkajs' connections.

import type { Kafka } from 'kafkajs';
import type { Isolation, Offsets } from '../log.ts';
import { endConnection, exchangeOf } from '../client/connection.ts';
import { clusterOf } from '../client/kafkajs-inner.ts';
import type { Cluster, ConnectionPool } from '../client/kafkajs-inner.ts';
import { ERROR, protocolError } from '../client/protocol-errors.ts';
import { array, int32, int64, int8, protocolReader, string } from '../client/protocol.ts';
import { ISOLATION } from '../client/topic-calls.ts';
import type { AbortedTransaction } from './record-batches.ts';

export interface FetcherOptions {
  /** Whether only committed messages are read, or also those of open and aborted transactions. Default: only committed ones. */
  readonly isolation?: Isolation | undefined;
  /** Longest time that a broker delays its response to a fetch while it has no new messages, in ms. Default 250. */
  readonly waitMs?: number | undefined;
}

/** Largest part of a fetch response for one partition, in bytes. The first batch of the partition may be larger. */
const PARTITION_BYTES = 2 ** 20;
/**
 * Largest fetch response, in bytes. If it is too small, more fetch requests are needed. If it is too large, this process needs more memory
 * for each broker from which it fetches.
 */
const MAX_RESPONSE_BYTES = 4 * 2 ** 20;
const FETCH_WAIT_MS = 250;

/**
 * Fetches messages of a topic from the partition leaders, without a consumer group, over internal connections of kafkajs. Batches are not
 * decoded by kafkajs, because kafkajs does not return the last offset of batches that compaction has emptied (kafkajs#577).
 *
 * All methods throw kafkajs' errors. After {@link close} they throw a plain `Error`.
 */
export class Fetcher {
  readonly #cluster: Cluster;
  readonly #topic: string;
  readonly #options: FetcherOptions;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #usedPools = new Set<ConnectionPool>();
  #isClosed = false;

  private constructor(cluster: Cluster, topic: string, options: FetcherOptions) {
    this.#cluster = cluster;
    this.#topic = topic;
    this.#options = options;
  }

  static async open(kafka: Kafka, topic: string, options: FetcherOptions): Promise<Fetcher> {
    const cluster = clusterOf(kafka);
    try {
      await cluster.connect();
      await cluster.addTargetTopic(topic);
    } catch (error) {
      await cluster.disconnect().catch(() => undefined); // the earlier error says more
      throw error;
    }
    return new Fetcher(cluster, topic, options);
  }

  /** Returns the broker id of each partition's leader, from metadata that are at most five minutes old. */
  leaders(): Promise<ReadonlyMap<number, number>> {
    return this.#call(async () => {
      await this.#cluster.refreshMetadataIfNecessary();
      const partitions = this.#cluster.findTopicPartitionMetadata(this.#topic);
      return new Map(partitions.map(({ partitionId, leader }) => [partitionId, leader]));
    });
  }

  /**
   * Fetches messages of several partitions, each from its offset in `offsets` on, as many as fit into one response. The error of a single
   * partition is returned in `errorCode` of its response.
   */
  fetch(leader: number, offsets: Offsets): Promise<readonly PartitionResponse[]> {
    return this.#call(async () => {
      const { connectionPool } = await this.#cluster.findBroker({ nodeId: String(leader) });
      this.#expectOpen();
      this.#usedPools.add(connectionPool);
      const body = fetchBody(this.#topic, offsets, this.#options);
      const exchange = exchangeOf(FETCH, body, connectionPool, readFetchResponse);
      const { errorCode, partitions } = await connectionPool.send(exchange);
      if (errorCode !== 0) throw protocolError(errorCode, `Fetch of ${this.#topic}`);
      return partitions;
    });
  }

  /** Closes the connections. Fetches in flight and later calls are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // disconnect() would wait for the brokers' responses, and brokers wait for new records.
    for (const each of [...this.#usedPools].flatMap(({ pool }) => pool)) {
      if (each.isConnected()) endConnection(each, this.#closedError());
    }
    await this.#cluster.disconnect();
    await Promise.allSettled(this.#calls);
    await this.#cluster.disconnect(); // kafkajs reconnects for calls made meanwhile
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    this.#expectOpen();
    const answer = work();
    this.#calls.add(answer);
    return answer.finally(() => this.#calls.delete(answer));
  }

  #expectOpen(): void {
    if (this.#isClosed) throw this.#closedError();
  }

  #closedError(): Error {
    return new Error(
      `Closed connection: this process has stopped reading ${this.#topic} and closed its connection, which is normal when a reader ends`,
    );
  }
}

/** Number of the Fetch request, and the newest version whose response can't redirect the reader to another replica (KIP-392). */
const FETCH = { name: 'Fetch', key: 1, version: 10 } as const;

function fetchBody(topic: string, offsets: Offsets, options: FetcherOptions): Buffer {
  const { isolation = 'committed', waitMs = FETCH_WAIT_MS } = options;
  const NO_REPLICA = int32(-1);
  const NO_SESSION = Buffer.concat([int32(0), int32(-1)]);
  const ANY_EPOCH = int32(-1);
  const NO_LOG_START = int64(-1n);
  const partitions = array([...offsets], ([partition, offset]) => [
    int32(partition),
    ANY_EPOCH,
    int64(offset),
    NO_LOG_START,
    int32(PARTITION_BYTES),
  ]);
  return Buffer.concat([
    NO_REPLICA,
    int32(waitMs),
    int32(1), // minimum number of bytes
    int32(MAX_RESPONSE_BYTES),
    int8(ISOLATION[isolation]),
    NO_SESSION,
    array([topic], (name) => [string(name), partitions]),
    array([], int32), // partitions to remove from a fetch session: there is no session
  ]);
}

export function isOutOfRange({ errorCode }: PartitionResponse): boolean {
  return errorCode === ERROR.OFFSET_OUT_OF_RANGE;
}

export interface PartitionResponse {
  readonly partition: number;
  /** Kafka's error code; 0 without an error. */
  readonly errorCode: number;
  /** Offset before which all in-sync replicas have the messages. */
  readonly highWatermark: bigint;
  /** Offset before which all transactions are committed or aborted: a `read_committed` reader can read up to it. */
  readonly lastStableOffset: bigint;
  readonly aborted: readonly AbortedTransaction[];
  /** Encoded record batches; the last one may be incomplete. */
  readonly records: Buffer;
}

export function readFetchResponse(bytes: Buffer) {
  const answer = protocolReader(bytes);
  const aborted = () => ({ producerId: answer.int64(), firstOffset: answer.int64() });
  const partition = (): PartitionResponse => {
    const head = { partition: answer.int32(), errorCode: answer.int16() };
    const ends = { highWatermark: answer.int64(), lastStableOffset: answer.int64() };
    answer.int64(); // log start offset
    return { ...head, ...ends, aborted: answer.array(aborted), records: answer.bytes() };
  };
  // How long the broker asks the client to send no requests, in ms. kafkajs' connection reads this field of a response and waits.
  const clientSideThrottleTime = answer.int32();
  const errorCode = answer.int16();
  answer.int32(); // fetch session id: sessions are not used
  const topics = answer.array(() => {
    answer.string(); // topic
    return answer.array(partition);
  });
  return { clientSideThrottleTime, errorCode, partitions: topics.flat() };
}
