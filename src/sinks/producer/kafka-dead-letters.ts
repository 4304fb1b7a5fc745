import type { Kafka, KafkaMessage } from 'kafkajs';
import { CellarstreamError, describeError } from '../../core/errors.ts';
import { plainProducer } from './plain-producer.ts';

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
