// The transactional producer.

import type { Kafka } from 'kafkajs';
import { KAFKA_LIMITS } from '../../core/retries.ts';
import { Brokers } from '../../kafka/client/brokers.ts';
import type { Connections } from '../../kafka/client/connections.ts';
import { kafkaError } from '../../kafka/client/kafka-error.ts';
import { Patience } from '../../kafka/client/patience.ts';
import { ERROR } from '../../kafka/client/protocol-errors.ts';
import type { OfTopic } from '../../kafka/client/topic-calls.ts';
import type { Isolation, TopicBounds } from '../../kafka/log.ts';
import type { CommitEnds, FencedSink, Message, ProducerIdentity } from '../sink.ts';
import {
  addPartitionsToTxn,
  describeTransaction,
  endTxn,
  initProducerId,
  NO_PRODUCER,
} from './calls.ts';
import { TransactionCoordinator } from './coordinator.ts';
import { deliver, Sequences } from './delivery.ts';
import type { Delivered } from './delivery.ts';
import { Fencing, TRANSACTION_TIMEOUT_MS } from './fencing.ts';
import { Leaders } from './leaders.ts';
import { batchesOf, partitionOf } from './record-batch.ts';
import type { PartitionedRecord } from './record-batch.ts';

/** Options of {@link openKafkaProducer}. */
export interface KafkaProducerOptions {
  readonly kafka: Kafka;
  /** Shared connections, which stay open when this producer is closed. Default: the producer opens its own connections. */
  readonly connections?: Connections | undefined;
  /** Transactional id. A second producer with the same id fences the first. */
  readonly transactionalId: string;
  /** Number of partitions, by topic. The producer can write only to the topics in this map. */
  readonly partitions: ReadonlyMap<string, number>;
  /**
   * Largest batch that a topic accepts (`max.message.bytes`), in bytes, by topic. A topic that is left out is assumed to accept the
   * brokers' default, 1 MiB.
   */
  readonly maxMessageBytes?: ReadonlyMap<string, number>;
  /**
   * Identity of the previous producer, which the new one replaces. Opening fails with an error that has `context.epoch` if another producer
   * was opened in between, or if the previous one's transaction timed out. Default: the new one replaces any producer of the same id.
   */
  readonly previousIdentity?: ProducerIdentity | undefined;
  /** Longest wait for a broker's response, in ms. Default 10,000. */
  readonly responseTimeoutMs?: number;
}

/**
 * Smallest step from one commit's timestamp to the next, in ms. It exceeds the largest `timestampOffset` of a message, 1 ms, so that the
 * timestamps of a key's messages rise.
 */
const MIN_COMMIT_SPACING_MS = 2;
/**
 * How far a commit's timestamp may be ahead of the clock, in ms. Within this limit, timestamps rise from commit to commit even after the
 * clock was set back.
 */
const MAX_TIMESTAMP_LEAD_MS = 1_000;
/**
 * Opens a transactional sink on Kafka. Opening fences every older producer of the transactional id and ends that producer's open
 * transaction, so messages that are read back afterwards are final.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`; `KAFKA_REFUSED`, `TLS_REFUSED`.
 */
export async function openKafkaProducer(options: KafkaProducerOptions): Promise<FencedSink> {
  const producer = new KafkaProducer(options);
  await producer.open();
  return producer;
}

/**
 * The producer of one transactional id. It is open from `open` until `close` or a failed commit. A commit has these phases:
 *
 * 1. The producer requests a new identity, if a late request of the previous commit may still arrive.
 * 2. The partitions are added to the transaction.
 * 3. The batches are delivered. If this phase or an earlier one fails, the transaction is aborted.
 * 4. The transaction is committed.
 */
class KafkaProducer implements FencedSink {
  readonly #options: KafkaProducerOptions;
  readonly #brokers: Brokers;
  readonly #leaders: Leaders;
  readonly #coordinator: TransactionCoordinator;
  readonly #fencing = new Fencing();
  #identity: ProducerIdentity;
  #sequences = new Sequences();
  /**
   * Whether a late copy of an earlier request may still reach a broker and become part of the next transaction. The producer's identity is
   * then renewed before that transaction.
   */
  #isInDoubt = false;
  #isDone = false;
  /** Timestamp of the newest commit, in epoch ms. */
  #timestamp = 0;

  constructor(options: KafkaProducerOptions) {
    const { kafka, connections, partitions, transactionalId } = options;
    this.#options = options;
    this.#identity = options.previousIdentity ?? NO_PRODUCER;
    this.#brokers = new Brokers({ kafka, connections }, options.responseTimeoutMs);
    this.#leaders = new Leaders(this.#brokers, partitions);
    this.#coordinator = new TransactionCoordinator(this.#brokers, transactionalId);
  }

  get producer(): ProducerIdentity {
    return this.#identity;
  }

  async open(): Promise<void> {
    try {
      await this.#renewIdentity();
    } catch (error) {
      this.#brokers.close();
      throw kafkaError(error);
    }
  }

  async commit(messages: readonly Message[]): Promise<CommitEnds> {
    if (this.#isDone) throw new Error('this producer has failed, or was closed: open another one');
    if (messages.length === 0) return new Map();
    let isDelivered = false;
    try {
      const delivered = await this.#deliver(messages);
      isDelivered = true;
      await this.#end('commit', this.#patience('commit'));
      return commitEnds(delivered);
    } catch (error) {
      this.#isDone = true;
      if (!isDelivered) await this.#abort();
      this.#brokers.close();
      throw this.#fencing.classify(error, kafkaError(error, 'COMMIT_FAILED'));
    }
  }

  /**
   * Resolves when readers can see the newest commit. Resolves early if the wait takes too long, or if the broker can't report the state of
   * the transaction (before Kafka 3.0). Never rejects.
   */
  async awaitVisible(): Promise<void> {
    // Brokers respond to EndTxn before they write the transaction markers.
    const known = this.#coordinator.send(describeTransaction(this.#options.transactionalId), {
      patience: this.#patience('visible'),
      codeOf: ({ errorCode, state }) =>
        state === 'PrepareCommit' ? ERROR.CONCURRENT_TRANSACTIONS : errorCode,
      isRepeatable: true,
    });
    await known.catch(() => undefined);
  }

  async bounds(topic: string, isolation: Isolation = 'committed'): Promise<TopicBounds> {
    try {
      return await this.#coordinator.bounds(topic, isolation, this.#patience('transaction'));
    } catch (error) {
      throw kafkaError(error);
    }
  }

  /** Closes the producer. Calls in flight are rejected, although brokers may still execute them. */
  close(): Promise<void> {
    // Calls that are still executed do no harm: the next producer raises the epoch before it reads messages back.
    this.#isDone = true;
    this.#brokers.close();
    return Promise.resolve();
  }

  #patience(limit: 'transaction' | 'commit' | 'abort' | 'visible'): Patience {
    return new Patience(KAFKA_LIMITS[limit].ms, this.#brokers.closed);
  }

  /**
   * Requests a new producer identity, whose sequence numbers begin at 0. If the producer already has an identity, its open transaction is
   * aborted first.
   */
  async #renewIdentity(): Promise<void> {
    const { transactionalId } = this.#options;
    const own = this.#identity;
    // EndTxn fails if the epoch is outdated. InitProducerId would end any open transaction, also that of a newer producer.
    if (own !== NO_PRODUCER) await this.#end('abort', this.#patience('transaction'));
    const call = initProducerId(transactionalId, TRANSACTION_TIMEOUT_MS, own);
    const { response } = await this.#coordinator.send(call, {
      patience: this.#patience('transaction'),
      codeOf: ({ errorCode }) => errorCode,
      isRepeatable: true,
    });
    this.#identity = response;
    this.#sequences = new Sequences();
  }

  async #deliver(messages: readonly Message[]): Promise<readonly Delivered[]> {
    const { transactionalId, partitions, maxMessageBytes } = this.#options;
    this.#fencing.begin(this.#isInDoubt);
    if (this.#isInDoubt) await this.#renewIdentity();
    this.#isInDoubt = false;
    const records = assignPartitions(messages, partitions);
    const topics = touchedPartitions(records);
    const patience = this.#patience('transaction');
    // Batches are packed while the coordinator stores the partitions.
    const [added, batches] = await Promise.all([
      this.#addPartitions(topics, patience),
      batchesOf(records, maxMessageBytes),
    ]);
    this.#timestamp = timestampAfter(this.#timestamp, Date.now());
    const { delivered, lateCopyPossible } = await deliver(batches, {
      ...{ brokers: this.#brokers, leaders: this.#leaders, transactionalId, patience },
      ...{ identity: this.#identity, sequences: this.#sequences, timestamp: this.#timestamp },
    });
    expectAllDelivered(topics, delivered);
    this.#isInDoubt = added.lateCopyPossible || lateCopyPossible;
    return delivered;
  }

  async #addPartitions(topics: readonly OfTopic<number>[], patience: Patience) {
    const { transactionalId } = this.#options;
    const names = topics.map(({ topic }) => topic);
    await this.#leaders.learn(names, patience);
    return this.#coordinator.send(addPartitionsToTxn(transactionalId, this.#identity, topics), {
      patience,
      codeOf: (answer) => firstErrorCode(answer.flatMap(({ partitions }) => partitions)),
      isRepeatable: true,
      onUnknownTopic: () => this.#leaders.refresh(),
    });
  }

  #end(outcome: 'commit' | 'abort', patience: Patience) {
    return this.#coordinator.send(endTxn(this.#options.transactionalId, this.#identity, outcome), {
      patience,
      // A transaction that is already ended can't be aborted, and need not be.
      codeOf: ({ errorCode }) =>
        outcome === 'abort' && errorCode === ERROR.INVALID_TXN_STATE ? ERROR.NONE : errorCode,
      // A late copy of a commit request would end the next transaction, so it is not repeated: the outcome is read back.
      isRepeatable: outcome === 'abort',
    });
  }

  /**
   * Aborts the transaction. Opening the next producer would also abort it, but until then `read_committed` readers can't read past it.
   * Never rejects.
   */
  async #abort(): Promise<void> {
    const late = setTimeout(() => this.#brokers.close(), KAFKA_LIMITS.abort.ms);
    await this.#end('abort', this.#patience('abort')).catch(() => undefined); // the first error says more
    clearTimeout(late);
  }
}

/**
 * Returns the timestamp of the next commit in epoch ms. `previous` is the timestamp of the newest commit, `now` the current time.
 *
 * - Normally: `now`, or {@link MIN_COMMIT_SPACING_MS} after `previous` if that is later.
 * - If that would be more than {@link MAX_TIMESTAMP_LEAD_MS} later than `now`, as after the clock was set back: `now`.
 */
function timestampAfter(previous: number, now: number): number {
  const next = previous + MIN_COMMIT_SPACING_MS;
  return next > now + MAX_TIMESTAMP_LEAD_MS ? now : Math.max(now, next);
}

function assignPartitions(
  messages: readonly Message[],
  partitions: ReadonlyMap<string, number>,
): PartitionedRecord[] {
  return messages.map((message, index) => {
    const count = partitions.get(message.topic);
    if (count === undefined)
      throw new Error(
        `${message.topic} is not among the topics that this producer was opened for. This is a bug of Cellarstream: report it`,
      );
    const { topic, value, headers, timestampOffset } = message;
    const text = message.key === null ? null : Buffer.from(message.key); // encoded once, for the partition and for the record
    const partition = text === null ? index % count : partitionOf(text, count);
    const key = message.keyBytes ?? text;
    return { topic, partition, key, value, headers, timestampOffset };
  });
}

function touchedPartitions(records: readonly PartitionedRecord[]): OfTopic<number>[] {
  const topics = new Map<string, Set<number>>();
  for (const { topic, partition } of records) {
    const partitions = topics.get(topic) ?? new Set();
    topics.set(topic, partitions.add(partition));
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions: [...partitions] }));
}

/**
 * Returns the first error code; 0 if there is none. OPERATION_NOT_ATTEMPTED is returned only if there is no other code, because it only
 * means that another partition failed.
 */
function firstErrorCode(partitions: readonly { readonly errorCode: number }[]): number {
  const codes = partitions.map(({ errorCode }) => errorCode).filter((code) => code !== ERROR.NONE);
  return codes.find((code) => code !== ERROR.OPERATION_NOT_ATTEMPTED) ?? codes[0] ?? ERROR.NONE;
}

/**
 * Throws an error if `delivered` (the partitions whose messages were written) lacks a partition in `meant` (the partitions of the
 * transaction). A commit would lose the messages of that partition.
 */
function expectAllDelivered(
  meant: readonly OfTopic<number>[],
  delivered: readonly Delivered[],
): void {
  const there = new Set(delivered.map(({ topic, partition }) => `${topic} ${partition}`));
  for (const { topic, partitions } of meant) {
    const lost = partitions.find((partition) => !there.has(`${topic} ${partition}`));
    if (lost !== undefined)
      throw new Error(
        `the messages for partition ${lost} of ${topic} were not sent, so the transaction is not committed. This is a bug of Cellarstream: report it`,
      );
  }
}

/**
 * Returns the offset after the commit's transaction marker in each partition. A topic is left out if the offset is unknown for one of its
 * partitions.
 */
function commitEnds(delivered: readonly Delivered[]): CommitEnds {
  const ends = new Map<string, Map<number, bigint>>();
  for (const { topic, partition, end } of delivered) {
    const ofTopic = ends.get(topic) ?? new Map<number, bigint>();
    ends.set(topic, ofTopic);
    if (end !== undefined) ofTopic.set(partition, end + 1n); // the transaction marker follows the messages
  }
  // A partial result could not be compared.
  for (const { topic, end } of delivered) if (end === undefined) ends.delete(topic);
  return ends;
}
