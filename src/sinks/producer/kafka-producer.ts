// The transactional producer.

import { ERROR } from '../../kafka/client/protocol-errors.ts';
import type { Kafka } from 'kafkajs';
import { kafkaError } from '../../kafka/client/kafka-error.ts';
import { batchesOf, partitionOf } from './record-batch.ts';
import type { PartitionedRecord } from './record-batch.ts';
import { brokersOf, brokersOver, patience } from '../../kafka/client/brokers.ts';
import type { Connections } from '../../kafka/client/connections.ts';
import { kafkajsCauseOf } from '../../kafka/client/protocol.ts';
import {
  addPartitionsToTxn,
  describeTransaction,
  endTxn,
  initProducerId,
  NO_PRODUCER,
} from './calls.ts';
import type { OfTopic } from '../../kafka/client/topic-calls.ts';
import { fencedBounds, transactionCoordinator } from './coordinator.ts';
import { deliver, Sequences } from './delivery.ts';
import type { Delivered } from './delivery.ts';
import { fencing, TRANSACTION_TIMEOUT_MS } from './fencing.ts';
import { leadersOf } from './leaders.ts';
import type { Patience } from '../../kafka/client/brokers.ts';
import type { CommitEnds, FencedSink, Message, ProducerIdentity } from '../sink.ts';

/** Options of {@link openKafkaProducer}. */
export interface KafkaProducerOptions {
  readonly kafka: Kafka;
  /** Shared connections, which stay open when this producer is closed. Default: its own connections. */
  readonly connections?: Connections | undefined;
  /** Transactional id, one for each task: a second producer with this id fences the first. */
  readonly transactionalId: string;
  /** Number of partitions of each topic that is written to. */
  readonly partitions: ReadonlyMap<string, number>;
  /** Largest batch by topic, in bytes: its `max.message.bytes`. Default: that of brokers, 1 MiB. */
  readonly maxMessageBytes?: ReadonlyMap<string, number>;
  /**
   * Identity of this process's previous producer, which the new one replaces. If that epoch is outdated, because another producer of the id
   * was opened since or the transaction timed out, opening has no effect and throws an error with `context.epoch`.
   * Default: replaces any producer of the id.
   */
  readonly previousIdentity?: ProducerIdentity | undefined;
  /** Longest wait for a broker's response, in ms. Default 10,000. */
  readonly responseTimeoutMs?: number;
}

/**
 * How long a transaction, or opening the producer, is retried, in ms. After this time a transaction fails with `COMMIT_FAILED`, and
 * `pipeline/list-task.ts` restarts from what was committed.
 */
const TRANSACTION_TRY_MS = 30_000;
/** How long committing a transaction is retried once its messages have been delivered, in ms. */
const END_TIMEOUT_MS = 15_000;
/** Longest wait until readers can see a commit (its markers are written), in ms. */
const VISIBLE_TIMEOUT_MS = 2_000;
/**
 * Least difference between the timestamps of two commits of a producer, in ms: more than the largest `timestampOffset` of a message (1), so
 * that the timestamps of a key's records rise from commit to commit.
 */
const MIN_COMMIT_SPACING_MS = 2;
/** How far the timestamps of commits may run ahead of the clock after it was set back, in ms. After a larger step they follow the clock. */
const MAX_TIMESTAMP_LEAD_MS = 1_000;
/** How long aborting a transaction is retried, in ms. Opening the next producer of the id aborts the transaction as well. */
const ABORT_TIMEOUT_MS = 2_000;

/**
 * Opens a transactional sink on Kafka, which works like Kafka's Java producer: all partitions are added to a transaction before anything is
 * sent; a batch without a response is sent again with the same bytes and the same sequence; a transaction is committed only after the
 * leader of every partition has acknowledged its batches.
 *
 * Opening it fences every older producer of the same id and ends its open transaction, so that what is read back afterwards is final.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`; `KAFKA_REFUSED`, `TLS_REFUSED`.
 */
export async function openKafkaProducer(options: KafkaProducerOptions): Promise<FencedSink> {
  const {
    kafka,
    connections,
    transactionalId,
    partitions,
    previousIdentity = NO_PRODUCER,
    responseTimeoutMs,
  } = options;
  const brokers = connections
    ? brokersOver(connections, responseTimeoutMs)
    : brokersOf(kafka, responseTimeoutMs);
  const leaders = leadersOf(brokers, partitions);
  const coordinator = transactionCoordinator(brokers, transactionalId);
  const patiently = () => patience(TRANSACTION_TRY_MS, brokers.closed);

  const end = (own: ProducerIdentity, outcome: 'commit' | 'abort', limit: Patience) =>
    coordinator.send(endTxn(transactionalId, own, outcome), {
      patience: limit,
      // A transaction that is already ended can't be aborted, and need not be.
      codeOf: ({ errorCode }) =>
        outcome === 'abort' && errorCode === ERROR.INVALID_TXN_STATE ? ERROR.NONE : errorCode,
      // A late copy of a commit request would end the next transaction, so it is not repeated: the outcome is read back.
      isRepeatable: outcome === 'abort',
    });

  /**
   * Resolves when readers can see the newest commit: brokers answer EndTxn before the markers are written. Never rejects, as the
   * transaction is committed in any case; gives up if it takes too long, or the broker does not support the request (before 3.0).
   */
  const awaitVisible = async (): Promise<void> => {
    const known = coordinator.send(describeTransaction(transactionalId), {
      patience: patience(VISIBLE_TIMEOUT_MS, brokers.closed),
      codeOf: ({ errorCode, state }) =>
        state === 'PrepareCommit' ? ERROR.CONCURRENT_TRANSACTIONS : errorCode,
      isRepeatable: true,
    });
    await known.catch(() => undefined);
  };

  /** Requests a new identity for the producer, with which the sequence numbers of all partitions begin at 0. */
  const renewed = async (own: ProducerIdentity) => {
    // EndTxn fails if the epoch is outdated. InitProducerId would end any open transaction, also that of a newer producer.
    if (own !== NO_PRODUCER) await end(own, 'abort', patiently());
    const call = initProducerId({
      transactionalId,
      transactionTimeoutMs: TRANSACTION_TIMEOUT_MS,
      own,
    });
    const { response } = await coordinator.send(call, {
      patience: patiently(),
      codeOf: ({ errorCode }) => errorCode,
      isRepeatable: true,
    });
    return { own: response, sequences: new Sequences() };
  };

  let producer: Awaited<ReturnType<typeof renewed>>;
  try {
    producer = await renewed(previousIdentity);
  } catch (error) {
    brokers.close();
    throw kafkaError(kafkajsCauseOf(error));
  }
  /** Whether a late copy of an earlier request may still join the next transaction of the same identity. */
  let isInDoubt = false;
  let isDone = false;
  /** Timestamp of the newest commit, in ms since 1970. */
  let timestamp = 0;
  const fences = fencing();

  const transaction = async (messages: readonly Message[]): Promise<readonly Delivered[]> => {
    fences.begin(isInDoubt);
    if (isInDoubt) producer = await renewed(producer.own);
    isInDoubt = false;
    const { own, sequences } = producer;
    const partitioned = assignPartitions(messages, partitions);
    const topics = touchedPartitions(partitioned);
    const limit = patiently();
    const added = leaders
      .learn(
        topics.map(({ topic }) => topic),
        limit,
      )
      .then(() =>
        coordinator.send(addPartitionsToTxn(transactionalId, own, topics), {
          patience: limit,
          codeOf: (answer) => firstErrorCode(answer.flatMap(({ partitions }) => partitions)),
          isRepeatable: true,
          onUnknownTopic: () => leaders.refresh(),
        }),
      );
    // Batches are packed while the coordinator stores the partitions.
    const [{ lateCopyPossible: addingStayedOut }, batches] = await Promise.all([
      added,
      batchesOf(partitioned, options.maxMessageBytes),
    ]);
    const { delivered, lateCopyPossible } = await deliver(batches, {
      brokers,
      leaders,
      transactionalId,
      identity: own,
      sequences,
      patience: limit,
      timestamp: (timestamp = timestampAfter(timestamp, Date.now())),
    });
    expectAllDelivered(topics, delivered);
    isInDoubt = addingStayedOut || lateCopyPossible;
    return delivered;
  };

  return {
    get producer() {
      return producer.own;
    },
    commit: async (messages, until = 'visible') => {
      if (isDone) throw new Error('this producer has failed, or was closed: open another one');
      if (messages.length === 0) return new Map();
      let isSent = false;
      try {
        const delivered = await transaction(messages);
        isSent = true;
        await end(producer.own, 'commit', patience(END_TIMEOUT_MS, brokers.closed));
        if (until === 'visible') await awaitVisible();
        return commitEnds(delivered);
      } catch (error) {
        isDone = true;
        // Opening the next producer would abort the transaction too, but until then readers can't read past it.
        if (!isSent) {
          const late = setTimeout(() => brokers.close(), ABORT_TIMEOUT_MS);
          await end(producer.own, 'abort', patience(ABORT_TIMEOUT_MS, brokers.closed)).catch(
            () => undefined,
          ); // the first error says more
          clearTimeout(late);
        }
        brokers.close();
        throw fences.classify(error, kafkaError(kafkajsCauseOf(error), 'COMMIT_FAILED'));
      }
    },
    awaitVisible,
    bounds: async (topic, isolation = 'committed') => {
      try {
        return await fencedBounds(coordinator, brokers, patiently(), { topic, isolation });
      } catch (error) {
        throw kafkaError(kafkajsCauseOf(error));
      }
    },
    /**
     * Closes the producer: rejects calls in flight, although brokers may still carry them out. That does no harm: opening the next producer
     * of the id ends this one's transaction and begins a new epoch before anything is read back. A request that arrives before belongs to
     * that transaction; one that arrives later has an outdated epoch. Closing the connections would not prevent more: brokers carry out
     * what they have received.
     */
    close: () => {
      isDone = true;
      brokers.close();
      return Promise.resolve();
    },
  };
}

/** Returns the timestamp of the commit that follows a commit with the timestamp `previous`. */
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
    if (count === undefined) throw new Error(`the partition count of ${message.topic} is unknown`); // a bug: the topic was not opened
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
 * Returns the first error code of the partitions. OPERATION_NOT_ATTEMPTED, which the failure of another partition causes, is returned only
 * if there is no other.
 */
function firstErrorCode(partitions: readonly { readonly errorCode: number }[]): number {
  const codes = partitions.map(({ errorCode }) => errorCode).filter((code) => code !== ERROR.NONE);
  return codes.find((code) => code !== ERROR.OPERATION_NOT_ATTEMPTED) ?? codes[0] ?? ERROR.NONE;
}

/** Checks before a commit that batches were delivered to all partitions: missing messages would be lost. @throws Error, which is a bug. */
function expectAllDelivered(
  meant: readonly OfTopic<number>[],
  delivered: readonly Delivered[],
): void {
  const there = new Set(delivered.map(({ topic, partition }) => `${topic} ${partition}`));
  for (const { topic, partitions } of meant) {
    for (const partition of partitions) {
      if (!there.has(`${topic} ${partition}`)) {
        throw new Error(`nothing was sent to partition ${partition} of ${topic}`); // a bug
      }
    }
  }
}

/** Returns the ends of a commit, only for topics whose end offset is known in every partition: a partial result could not be compared. */
function commitEnds(delivered: readonly Delivered[]): CommitEnds {
  const ends = new Map<string, Map<number, bigint>>();
  for (const { topic, partition, end } of delivered) {
    const ofTopic = ends.get(topic) ?? new Map<number, bigint>();
    ends.set(topic, ofTopic);
    if (end !== undefined) ofTopic.set(partition, end + 1n); // the transaction marker follows the messages
  }
  for (const { topic, end } of delivered) if (end === undefined) ends.delete(topic);
  return ends;
}
