import type { Kafka } from 'kafkajs';
import { kafkaError } from '../client/kafka-error.ts';
import { batchesOf } from './batches.ts';
import { brokersOf } from '../client/brokers.ts';
import { initProducerId, NOBODY } from './calls.ts';
import { deliver } from './delivery.ts';
import { leadersOf } from './leaders.ts';
import { partitionOf } from './partition-of.ts';
import { patience } from './patience.ts';
import type { Patience } from './patience.ts';
import { protocolError } from '../client/protocol-errors.ts';
import { kafkasOf } from '../client/unanswered.ts';
import type { ProducerRecord } from './record-batch.ts';
import { sequences } from './sequences.ts';
import type { Sequences } from './sequences.ts';
import type { ProducerIdentity } from '../sink.ts';

/** A producer that knows no transactions. */
export interface PlainProducer {
  /**
   * Resolves when all replicas that count have it, once, whatever had to be sent again meanwhile. One record is under
   * way at a time, the others wait.
   *
   * @throws CellarstreamError `KAFKA_UNREACHABLE` and the like, `TOPIC_SETTINGS` where it is too large for
   * the topic: then it may be there or not, and who sends it again may have it there twice.
   */
  send(topic: string, record: ProducerRecord): Promise<void>;
  /** At once: what is under way fails. */
  close(): void;
}

/** How long a record is tried to be sent. */
const PATIENCE_MS = 30_000;
const NO_TRANSACTIONS = { transactionalId: null, transactionTimeoutMs: 0, own: NOBODY } as const;

/**
 * Connects when there is something to send.
 *
 * @param answerWithinMs Longest wait for a broker's answer, in ms. Default 10,000.
 */
export function plainProducer(kafka: Kafka, answerWithinMs?: number): PlainProducer {
  const brokers = brokersOf(kafka, answerWithinMs);
  const leaders = leadersOf(brokers);
  let identity: { readonly own: ProducerIdentity; readonly sequences: Sequences } | undefined;

  const begun = async (limit: Patience) => {
    for (;;) {
      try {
        const own = await brokers.askAny(initProducerId(NO_TRANSACTIONS));
        if (own.errorCode === 0) return { own, sequences: sequences() };
        throw protocolError(own.errorCode, 'InitProducerId');
      } catch (error) {
        await limit.wait(error);
      }
    }
  };

  const sent = async (topic: string, record: ProducerRecord): Promise<void> => {
    const limit = patience(PATIENCE_MS, brokers.closed);
    try {
      identity ??= await begun(limit);
      await leaders.learn([topic], limit);
      const partition =
        record.key === null ? 0 : partitionOf(record.key, leaders.partitions(topic)!);
      const batches = await batchesOf([{ ...record, topic, partition }]);
      await deliver(batches, {
        brokers,
        leaders,
        transactionalId: null,
        ...identity,
        patience: limit,
        timestamp: Date.now(),
      });
    } catch (error) {
      identity = undefined; // what has become of its last sequence is not known
      throw kafkaError(kafkasOf(error));
    }
  };
  let last: Promise<unknown> = Promise.resolve();

  return {
    send: (topic, record) => {
      const turn = last.then(() => sent(topic, record));
      last = turn.catch(() => undefined); // its sender has the error
      return turn;
    },
    close: () => brokers.close(),
  };
}
