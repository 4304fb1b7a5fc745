// A producer without transactions, and the dead letters of a consumer group that it writes.

import type { Kafka, KafkaMessage } from 'kafkajs';
import { CellarstreamError, describeError } from '../../core/errors.ts';
import { KAFKA_LIMITS } from '../../core/retries.ts';
import { Brokers } from '../../kafka/client/brokers.ts';
import { hasErrorType, kafkaError } from '../../kafka/client/kafka-error.ts';
import { Patience, retrying } from '../../kafka/client/patience.ts';
import { protocolError } from '../../kafka/client/protocol-errors.ts';
import type { ProducerIdentity } from '../sink.ts';
import { initProducerId, NO_PRODUCER } from './calls.ts';
import { deliver, Sequences } from './delivery.ts';
import { Leaders } from './leaders.ts';
import { batchesOf, partitionOf } from './record-batch.ts';
import type { ProducerRecord } from './record-batch.ts';

/** A producer without transactions. It connects when the first message is sent. Messages are sent one after another. */
export class PlainProducer {
  readonly #brokers: Brokers;
  readonly #leaders: Leaders;
  /** The producer's identity and its sequence numbers; undefined before the first message, and after a failure. */
  #producer: { readonly identity: ProducerIdentity; readonly sequences: Sequences } | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @param responseTimeoutMs Longest wait for a broker's response, in ms. Default 10,000. */
  constructor(kafka: Kafka, responseTimeoutMs?: number) {
    this.#brokers = new Brokers({ kafka }, responseTimeoutMs);
    this.#leaders = new Leaders(this.#brokers);
  }

  /**
   * Writes a message. Resolves when all in-sync replicas have the message. The retries that this method makes do not duplicate it.
   *
   * @throws CellarstreamError, such as `KAFKA_UNREACHABLE`, or `TOPIC_SETTINGS` if the message is too large for the topic. The message may
   * have been written nevertheless.
   */
  send(topic: string, record: ProducerRecord): Promise<void> {
    const turn = this.#last.then(() => this.#send(topic, record));
    this.#last = turn.catch(() => undefined); // its caller gets the error
    return turn;
  }

  /** Closes the connections at once. A call to `send` that is in flight fails. */
  close(): void {
    this.#brokers.close();
  }

  async #send(topic: string, record: ProducerRecord): Promise<void> {
    const brokers = this.#brokers;
    const leaders = this.#leaders;
    const patience = new Patience(KAFKA_LIMITS.send.ms, brokers.closed);
    try {
      this.#producer ??= await this.#identify(patience);
      await leaders.learn([topic], patience);
      const { key } = record;
      const partition = key === null ? 0 : partitionOf(key, leaders.partitions(topic)!);
      const batches = await batchesOf([{ ...record, topic, partition }]);
      await deliver(batches, {
        ...{ brokers, leaders, transactionalId: null, ...this.#producer, patience },
        timestamp: Date.now(),
      });
    } catch (error) {
      this.#producer = undefined; // whether the last sequence was used is unknown
      throw kafkaError(error);
    }
  }

  #identify(patience: Patience) {
    return retrying(patience, async () => {
      const identity = await this.#brokers.sendToAny(initProducerId(null, 0, NO_PRODUCER));
      if (identity.errorCode !== 0) throw protocolError(identity.errorCode, 'InitProducerId');
      return { identity, sequences: new Sequences() };
    });
  }
}

/** A message that a consumer could not handle, with the error. */
export interface GivenUp {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
  readonly error: unknown;
  /** Number of failed attempts to handle the message; 0 if it could not be decoded. */
  readonly tries: number;
}

/**
 * Writes a consumer's dead letters to a topic. A dead letter is a copy of a message with additional headers, which describe its origin and
 * the error.
 */
export interface DeadLetters {
  /**
   * Writes a dead letter. Resolves when all in-sync replicas have it. A call that is repeated after a failure can write the dead letter
   * twice.
   *
   * @throws CellarstreamError `KAFKA_UNREACHABLE`; `TOPIC_SETTINGS` if the dead letter is too large for the topic; `KAFKA_REFUSED`.
   */
  write(letter: GivenUp): Promise<void>;
  close(): Promise<void>;
}

/** Longest error text in the header `dlq-error`, in characters. */
const MAX_ERROR_CHARS = 1_000;

export function kafkaDeadLetters(kafka: Kafka, topic: string, groupId: string): DeadLetters {
  const producer = new PlainProducer(kafka);
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
        throw hasErrorType(cause, 'MESSAGE_TOO_LARGE') ? tooLargeError(topic, cause) : cause;
      }
    },
    close: () => Promise.resolve(producer.close()),
  };
}

function tooLargeError(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'TOPIC_SETTINGS',
    `a dead letter with its headers about the error is larger than ${topic} accepts: ` +
      `set max.message.bytes of ${topic} higher than that of the consumed topic`,
    { cause },
  );
}
