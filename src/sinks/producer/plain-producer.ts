// A producer without transactions, and the dead letters of a consumer group that it writes.

import type { Kafka, KafkaMessage } from 'kafkajs';
import { kafkaError } from '../client/kafka-error.ts';
import { batchesOf, partitionOf } from './record-batch.ts';
import { brokersOf, patience } from '../client/brokers.ts';
import { initProducerId, NOBODY } from './calls.ts';
import { deliver, Sequences } from './delivery.ts';
import { leadersOf } from './leaders.ts';
import type { Patience } from '../client/brokers.ts';
import { protocolError } from '../client/protocol-errors.ts';
import { kafkasOf } from '../client/protocol.ts';
import type { ProducerRecord } from './record-batch.ts';
import type { ProducerIdentity } from '../sink.ts';
import { CellarstreamError, describeError } from '../../core/errors.ts';

/** A producer that knows no transactions. */
interface PlainProducer {
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
        if (own.errorCode === 0) return { own, sequences: new Sequences() };
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

/** A message that a consumer gave up, and why. */
export interface GivenUp {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
  readonly error: unknown;
  /** How often it was handled in vain; 0 when it could not be read. */
  readonly tries: number;
}

/** A consumer's dead letters: its own topic, of messages as they were. */
export interface DeadLetters {
  /**
   * Resolves when all replicas have it. May be called again after a failure; then there can be two.
   *
   * @throws CellarstreamError `KAFKA_UNREACHABLE`; `TOPIC_SETTINGS` where it is too large; `KAFKA_REFUSED`.
   */
  write(letter: GivenUp): Promise<void>;
  close(): Promise<void>;
}

const MAX_ERROR_CHARS = 1_000;

/** Connects when there is the first letter to write. */
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
        throw isTooLarge(cause) ? tooLarge(topic, cause) : cause;
      }
    },
    close: () => Promise.resolve(producer.close()),
  };
}

function isTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('type' in error && error.type === 'MESSAGE_TOO_LARGE') || isTooLarge(error.cause);
}

function tooLarge(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'TOPIC_SETTINGS',
    `a dead letter is larger than ${topic} takes, with the headers that say why: ` +
      'raise max.message.bytes of the topic above that of the topic it comes from',
    { cause },
  );
}
