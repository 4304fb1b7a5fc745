import type { Kafka, KafkaMessage, Producer } from 'kafkajs';
import { CellarstreamError, describeError } from '../errors.ts';
import { kafkaError } from './kafka-error.ts';
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

const MOST_ERROR_CHARS = 1_000;

/** Connects when there is the first letter to write. */
export function kafkaDeadLetters(kafka: Kafka, topic: string, groupId: string): DeadLetters {
  let opened: Promise<Producer> | undefined;

  /** Its sequence numbers are in doubt after a failure, so the next letter has a new producer. */
  const discard = async (failed: Promise<Producer>): Promise<void> => {
    if (opened === failed) opened = undefined;
    await failed.then((producer) => producer.disconnect()).catch(() => undefined); // said already
  };
  return {
    write: async ({ topic: origin, partition, message, error, tries }) => {
      const { key, value, headers, offset } = message;
      const producer = (opened ??= open(kafka));
      try {
        const about = {
          'dlq-topic': origin,
          'dlq-partition': String(partition),
          'dlq-offset': offset,
          'dlq-group': groupId,
          'dlq-error': describeError(error).slice(0, MOST_ERROR_CHARS),
          'dlq-tries': String(tries),
        };
        const letter = { key, value, headers: { ...headers, ...about } };
        await (await producer).send({ topic, acks: -1, messages: [letter] });
      } catch (cause) {
        await discard(producer);
        throw isTooLarge(cause) ? tooLarge(topic, cause) : kafkaError(cause);
      }
    },
    close: async () => {
      if (opened) await (await opened).disconnect();
    },
  };
}

async function open(kafka: Kafka): Promise<Producer> {
  const producer = plainProducer(kafka);
  await producer.connect();
  return producer;
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
