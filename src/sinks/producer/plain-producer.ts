// A producer without transactions, and the dead letters of a consumer group that it writes.

import type { Kafka, KafkaMessage } from 'kafkajs';
import { kafkaError } from '../../kafka/client/kafka-error.ts';
import { batchesOf, partitionOf } from './record-batch.ts';
import { brokersOf, patience } from '../../kafka/client/brokers.ts';
import { initProducerId, NO_PRODUCER } from './calls.ts';
import { deliver, Sequences } from './delivery.ts';
import { leadersOf } from './leaders.ts';
import type { Patience } from '../../kafka/client/brokers.ts';
import { protocolError } from '../../kafka/client/protocol-errors.ts';
import { kafkajsCauseOf } from '../../kafka/client/protocol.ts';
import type { ProducerRecord } from './record-batch.ts';
import type { ProducerIdentity } from '../sink.ts';
import { CellarstreamError, describeError } from '../../core/errors.ts';

/** A producer without transactions. */
interface PlainProducer {
  /**
   * Writes a record; resolves when all in-sync replicas have it. Retries do not duplicate it. Records are sent one after the other.
   *
   * @throws CellarstreamError, such as `KAFKA_UNREACHABLE`, or `TOPIC_SETTINGS` if the record is too large for the topic. The record may
   * have been written nevertheless, so that sending it again can write it twice.
   */
  send(topic: string, record: ProducerRecord): Promise<void>;
  /** Closes the connections at once; a record that is being sent fails. */
  close(): void;
}

/** How long sending a record is retried, in ms. */
const SEND_TRY_MS = 30_000;
const NO_TRANSACTIONS = {
  transactionalId: null,
  transactionTimeoutMs: 0,
  own: NO_PRODUCER,
} as const;

/**
 * Creates a producer without transactions, which connects when the first record is sent.
 *
 * @param answerWithinMs Longest wait for a broker's response, in ms. Default 10,000.
 */
export function plainProducer(kafka: Kafka, answerWithinMs?: number): PlainProducer {
  const brokers = brokersOf(kafka, answerWithinMs);
  const leaders = leadersOf(brokers);
  let identity: { readonly identity: ProducerIdentity; readonly sequences: Sequences } | undefined;

  const identify = async (limit: Patience) => {
    for (;;) {
      try {
        const own = await brokers.sendToAny(initProducerId(NO_TRANSACTIONS));
        if (own.errorCode === 0) return { identity: own, sequences: new Sequences() };
        throw protocolError(own.errorCode, 'InitProducerId');
      } catch (error) {
        await limit.wait(error);
      }
    }
  };

  const sent = async (topic: string, record: ProducerRecord): Promise<void> => {
    const limit = patience(SEND_TRY_MS, brokers.closed);
    try {
      identity ??= await identify(limit);
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
      identity = undefined; // whether the last sequence was used is unknown
      throw kafkaError(kafkajsCauseOf(error));
    }
  };
  let last: Promise<unknown> = Promise.resolve();

  return {
    send: (topic, record) => {
      const turn = last.then(() => sent(topic, record));
      last = turn.catch(() => undefined); // its caller gets the error
      return turn;
    },
    close: () => brokers.close(),
  };
}

/** A message that a consumer could not handle, and the error. */
export interface GivenUp {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
  readonly error: unknown;
  /** Number of failed attempts to handle the message; 0 if it could not be decoded. */
  readonly tries: number;
}

/** Writes a consumer's dead letters: unchanged messages, in a topic of its own. */
export interface DeadLetters {
  /**
   * Writes a dead letter; resolves when all in-sync replicas have it. May be repeated after a failure, which can write it twice.
   *
   * @throws CellarstreamError `KAFKA_UNREACHABLE`; `TOPIC_SETTINGS` if it is too large; `KAFKA_REFUSED`.
   */
  write(letter: GivenUp): Promise<void>;
  close(): Promise<void>;
}

/** Longest error text in the header `dlq-error`, in characters. */
const MAX_ERROR_CHARS = 1_000;

/** Creates the writer of a consumer group's dead letters, which connects when the first one is written. */
export function kafkaDeadLetters(kafka: Kafka, topic: string, groupId: string): DeadLetters {
  const producer = plainProducer(kafka);
  return {
    write: async ({ topic: origin, partition, message, error, tries }) => {
      const { key, value, headers, offset } = message;
      try {
        const about = {
          'dlq-topic': origin,
          'dlq-partition': String(partition),
          'dlq-offset': offset,
          'dlq-group': groupId,
          'dlq-error': describeError(error).slice(0, MAX_ERROR_CHARS),
          'dlq-tries': String(tries),
        };
        await producer.send(topic, { key, value, headers: { ...headers, ...about } });
      } catch (cause) {
        throw isTooLarge(cause) ? tooLargeError(topic, cause) : cause;
      }
    },
    close: () => Promise.resolve(producer.close()),
  };
}

function isTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('type' in error && error.type === 'MESSAGE_TOO_LARGE') || isTooLarge(error.cause);
}

function tooLargeError(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'TOPIC_SETTINGS',
    `a dead letter with its headers about the error is larger than ${topic} accepts: ` +
      'raise max.message.bytes of the topic above that of the topic it comes from',
    { cause },
  );
}
