// The transactional producer.

import { ERROR } from '../client/protocol-errors.ts';
import type { Kafka } from 'kafkajs';
import { kafkaError } from '../client/kafka-error.ts';
import { batchesOf, partitionOf } from './record-batch.ts';
import type { PlacedRecord } from './record-batch.ts';
import { brokersOf, brokersOver, patience } from '../client/brokers.ts';
import type { Connections } from '../client/connections.ts';
import { kafkasOf } from '../client/protocol.ts';
import {
  addPartitionsToTxn,
  describeTransaction,
  endTxn,
  initProducerId,
  NOBODY,
} from './calls.ts';
import type { OfTopic } from '../client/topic-calls.ts';
import { fencedBounds, transactionCoordinator } from './coordinator.ts';
import { deliver, Sequences } from './delivery.ts';
import type { Delivered } from './delivery.ts';
import { fencing, TRANSACTION_TIMEOUT_MS } from './fencing.ts';
import { leadersOf } from './leaders.ts';
import type { Patience } from '../client/brokers.ts';
import type { Ends, FencedSink, Message, ProducerIdentity } from '../sink.ts';

/** What {@link openKafkaProducer} needs. */
export interface KafkaProducerOptions {
  readonly kafka: Kafka;
  /** Shared with others, who keep them when this one is closed. Default connections of its own. */
  readonly connections?: Connections | undefined;
  /** One producer a task: a second one with this id fences the first. */
  readonly transactionalId: string;
  /** Partitions of each topic that is written to. */
  readonly partitions: ReadonlyMap<string, number>;
  /** By topic, the most bytes of a batch, its `max.message.bytes`. Default a broker's own, 1 MiB. */
  readonly maxMessageBytes?: ReadonlyMap<string, number>;
  /**
   * Who the last producer of this process was. The new one takes its place, and only its: where its epoch is over, as
   * another producer of the id was opened since, or its transaction ran out of time, that is an error with
   * `context.epoch`, and nothing has come of it.
   * Default: takes the place of whoever it is.
   */
  readonly own?: ProducerIdentity | undefined;
  /** Longest wait for a broker's answer, in ms. Default 10,000. */
  readonly answerWithinMs?: number;
}

/**
 * How long a transaction, or the opening, is tried: what is too long for that fails with `COMMIT_FAILED`, and
 * `pipeline/list-task.ts` begins again from what was committed.
 */
const PATIENCE_MS = 30_000;
/** How long the end of a transaction is tried. */
const END_WITHIN_MS = 15_000;
/** How long the markers of a commit are waited for. */
const VISIBLE_WITHIN_MS = 2_000;
/**
 * Least difference between the timestamps of two commits of a producer, in ms: more than the largest `timestampOffset` of a message (1), so that the
 * timestamps of a key's records rise from commit to commit.
 */
const COMMIT_APART_MS = 2;
/** Longest time that timestamps may run ahead of the clock after it was set back, in ms. After a larger step they follow the clock. */
const MAX_AHEAD_MS = 1_000;
/** How long an abort is tried: who opens the next producer of the id brings it about as well. */
const ABORT_WITHIN_MS = 2_000;

/**
 * A transactional sink on Kafka, as Kafka's own producer works: all partitions of a transaction are added
 * before anything is sent; what is not answered is sent again as the same bytes with the same sequence; nothing is
 * committed unless the leader of every partition that was meant has answered with it.
 *
 * Opening it fences every older producer of the same id and ends whatever transaction that one had open, so that
 * what is read back afterwards is final.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`; `KAFKA_REFUSED`, `TLS_REFUSED`.
 */
export async function openKafkaProducer(options: KafkaProducerOptions): Promise<FencedSink> {
  const { kafka, connections, transactionalId, partitions, own = NOBODY, answerWithinMs } = options;
  const brokers = connections
    ? brokersOver(connections, answerWithinMs)
    : brokersOf(kafka, answerWithinMs);
  const leaders = leadersOf(brokers, partitions);
  const coordinator = transactionCoordinator(brokers, transactionalId);
  const patiently = () => patience(PATIENCE_MS, brokers.closed);

  const end = (own: ProducerIdentity, outcome: 'commit' | 'abort', limit: Patience) =>
    coordinator.ask(endTxn(transactionalId, own, outcome), {
      patience: limit,
      // What is committed already can't be aborted, and need not be.
      codeOf: ({ errorCode }) =>
        outcome === 'abort' && errorCode === ERROR.INVALID_TXN_STATE ? ERROR.NONE : errorCode,
      // A late copy of a commit would end the next transaction: what has come of it is found out anew.
      isRepeatable: outcome === 'abort',
    });

  /**
   * Resolves when readers can see what is committed: EndTxn is answered before the markers are written. It is
   * committed all the same: where that takes too long, or the broker does not tell (before 3.0), it is not waited for.
   */
  const visible = async (): Promise<void> => {
    const known = coordinator.ask(describeTransaction(transactionalId), {
      patience: patience(VISIBLE_WITHIN_MS, brokers.closed),
      codeOf: ({ errorCode, state }) =>
        state === 'PrepareCommit' ? ERROR.CONCURRENT_TRANSACTIONS : errorCode,
      isRepeatable: true,
    });
    await known.catch(() => undefined); // as said
  };

  /** A new identity, with which all sequences begin at 0. */
  const renewed = async (own: ProducerIdentity) => {
    // EndTxn goes by the epoch. InitProducerId would end whatever is open, of a newer producer too.
    if (own !== NOBODY) await end(own, 'abort', patiently());
    const call = initProducerId({
      transactionalId,
      transactionTimeoutMs: TRANSACTION_TIMEOUT_MS,
      own,
    });
    const { answer } = await coordinator.ask(call, {
      patience: patiently(),
      codeOf: ({ errorCode }) => errorCode,
      isRepeatable: true,
    });
    return { own: answer, sequences: new Sequences() };
  };

  let producer: Awaited<ReturnType<typeof renewed>>;
  try {
    producer = await renewed(own);
  } catch (error) {
    brokers.close();
    throw kafkaError(kafkasOf(error));
  }
  /** A late copy of what was sent before may join the next transaction of the same identity. */
  let isInDoubt = false;
  let isDone = false;
  /** Timestamp of the newest commit. */
  let timestamp = 0;
  const fences = fencing();

  const transaction = async (messages: readonly Message[]): Promise<readonly Delivered[]> => {
    fences.begin(isInDoubt);
    if (isInDoubt) producer = await renewed(producer.own);
    isInDoubt = false;
    const { own, sequences } = producer;
    const placed = placedBy(messages, partitions);
    const topics = partitionsOf(placed);
    const limit = patiently();
    const added = leaders
      .learn(
        topics.map(({ topic }) => topic),
        limit,
      )
      .then(() =>
        coordinator.ask(addPartitionsToTxn(transactionalId, own, topics), {
          patience: limit,
          codeOf: (answer) => worstOf(answer.flatMap(({ partitions }) => partitions)),
          isRepeatable: true,
          onUnknown: () => leaders.refresh(),
        }),
      );
    // While the coordinator writes down the partitions, what they get is packed.
    const [{ stayedOut: addingStayedOut }, batches] = await Promise.all([
      added,
      batchesOf(placed, options.maxMessageBytes),
    ]);
    const { delivered, stayedOut } = await deliver(batches, {
      brokers,
      leaders,
      transactionalId,
      own,
      sequences,
      patience: limit,
      timestamp: (timestamp = timestampAfter(timestamp, Date.now())),
    });
    expectAll(topics, delivered);
    isInDoubt = addingStayedOut || stayedOut;
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
        await end(producer.own, 'commit', patience(END_WITHIN_MS, brokers.closed));
        if (until === 'visible') await visible();
        return endsOf(delivered);
      } catch (error) {
        isDone = true;
        // The next opening would do it too, but readers wait for it.
        if (!isSent) {
          const late = setTimeout(() => brokers.close(), ABORT_WITHIN_MS);
          await end(producer.own, 'abort', patience(ABORT_WITHIN_MS, brokers.closed)).catch(
            () => undefined,
          ); // the first error says more
          clearTimeout(late);
        }
        brokers.close();
        throw fences.judge(error, kafkaError(kafkasOf(error), 'COMMIT_FAILED'));
      }
    },
    visible,
    bounds: async (topic, isolation = 'committed') => {
      try {
        return await fencedBounds(coordinator, brokers, patiently(), { topic, isolation });
      } catch (error) {
        throw kafkaError(kafkasOf(error));
      }
    },
    /**
     * What is under way goes on, and may be carried out whenever it arrives. That does no harm, as after isInDoubt: whoever
     * opens the next producer of the id has its transaction ended, and an epoch begun, before anything is read back. What
     * arrives before is in that transaction; what arrives later has an epoch that is over. To cut the connection would
     * not prevent more: brokers carry out what they have received.
     */
    close: () => {
      isDone = true;
      brokers.close();
      return Promise.resolve();
    },
  };
}

/** The timestamp of the commit after one of `previous`. */
function timestampAfter(previous: number, now: number): number {
  const next = previous + COMMIT_APART_MS;
  return next > now + MAX_AHEAD_MS ? now : Math.max(now, next);
}

function placedBy(
  messages: readonly Message[],
  partitions: ReadonlyMap<string, number>,
): PlacedRecord[] {
  return messages.map((message, place) => {
    const count = partitions.get(message.topic);
    if (count === undefined) throw new Error(`nothing is known of the topic ${message.topic}`); // a bug: it was not made
    const { topic, value, headers, timestampOffset } = message;
    const text = message.key === null ? null : Buffer.from(message.key); // once, for the partition and for the record
    const partition = text === null ? place % count : partitionOf(text, count);
    const key = message.keyBytes ?? text;
    return { topic, partition, key, value, headers, timestampOffset };
  });
}

function partitionsOf(records: readonly PlacedRecord[]): OfTopic<number>[] {
  const topics = new Map<string, Set<number>>();
  for (const { topic, partition } of records) {
    const partitions = topics.get(topic) ?? new Set();
    topics.set(topic, partitions.add(partition));
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions: [...partitions] }));
}

/** Said of partitions because of another one of the same request. */

function worstOf(partitions: readonly { readonly errorCode: number }[]): number {
  const codes = partitions.map(({ errorCode }) => errorCode).filter((code) => code !== ERROR.NONE);
  return codes.find((code) => code !== ERROR.OPERATION_NOT_ATTEMPTED) ?? codes[0] ?? ERROR.NONE;
}

/** The last look before a commit: what was meant for a partition, and is not there, would be lost for good. */
function expectAll(meant: readonly OfTopic<number>[], delivered: readonly Delivered[]): void {
  const there = new Set(delivered.map(({ topic, partition }) => `${topic} ${partition}`));
  for (const { topic, partitions } of meant) {
    for (const partition of partitions) {
      if (!there.has(`${topic} ${partition}`)) {
        throw new Error(`nothing was sent to partition ${partition} of ${topic}`); // a bug
      }
    }
  }
}

/** Of the topics of which every end is known: what is not known of one partition makes the others' say less. */
function endsOf(delivered: readonly Delivered[]): Ends {
  const ends = new Map<string, Map<number, bigint>>();
  for (const { topic, partition, end } of delivered) {
    const ofTopic = ends.get(topic) ?? new Map<number, bigint>();
    ends.set(topic, ofTopic);
    if (end !== undefined) ofTopic.set(partition, end + 1n); // behind the messages stands the transaction's marker
  }
  for (const { topic, end } of delivered) if (end === undefined) ends.delete(topic);
  return ends;
}
