import type { IHeaders, KafkaMessage } from 'kafkajs';
import { CellarstreamError } from '../core/errors.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { unframe } from '../schemas/registry/wire.ts';
import type { Topic } from './topic.ts';
import { keyText } from '../schemas/events/record-key.ts';

/** A message of a topic, with its value decoded. */
export interface Consumed<T> {
  readonly topic: string;
  readonly partition: number;
  /** Offset of the message in its partition, as decimal text because offsets have 64 bits. */
  readonly offset: string;
  /** Kafka timestamp of the message, ms since 1970. */
  readonly timestamp: number;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Decoded value of the message; null for a tombstone: the record with this key was deleted. */
  readonly value: T | null;
}

/** Decodes messages of a topic: `prepare` fetches schemas, `read` decodes values synchronously. */
export class MessageReader<T> {
  readonly #registry: Registry;
  readonly #topic: Topic<T>;
  readonly #decoders = new Map<number, (avro: Uint8Array) => T>();

  constructor(registry: Registry, topic: Topic<T>) {
    this.#registry = registry;
    this.#topic = topic;
  }

  /**
   * Fetches the schemas of these messages that are not cached yet. Malformed messages and unusable schemas cause errors only in
   * {@link read}.
   *
   * @throws CellarstreamError `REGISTRY_UNREACHABLE` if a retry may succeed; otherwise `REGISTRY_REFUSED` or `TLS_REFUSED`.
   */
  async prepare(messages: readonly KafkaMessage[]): Promise<void> {
    for (const { value } of messages) {
      if (value === null) continue;
      let schemaId: number;
      try {
        ({ schemaId } = unframe(value));
      } catch {
        continue;
      }
      if (this.#decoders.has(schemaId)) continue;
      const writer = await this.#registry.schemaById(schemaId);
      try {
        this.#decoders.set(schemaId, this.#topic.values(writer));
      } catch (cause) {
        this.#decoders.set(schemaId, () => {
          throw cause;
        });
      }
    }
  }

  /**
   * Decodes a message that was passed to {@link prepare} before.
   *
   * @throws CellarstreamError `VALUE_UNREADABLE`, with `partition` and `offset` in its context.
   */
  read(partition: number, message: KafkaMessage): Consumed<T> {
    const { key, offset, timestamp, headers } = message;
    const topic = this.#topic.name;
    let value: T | null;
    try {
      const frame = message.value && unframe(message.value);
      value = frame && this.#decoders.get(frame.schemaId)!(frame.payload);
    } catch (cause) {
      throw unreadable(topic, partition, offset, cause);
    }
    return {
      topic,
      partition,
      offset,
      timestamp: Number(timestamp),
      key: key && keyText(key),
      headers: texts(headers),
      value,
    };
  }
}

function texts(headers: IHeaders | undefined): Record<string, string> {
  const held: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers ?? {})) {
    // The last value of a repeated header counts, as in Kafka's `Headers.lastHeader`.
    const text = Array.isArray(value) ? value.at(-1) : value;
    if (text !== undefined) held[name] = text.toString();
  }
  return held;
}

function unreadable(
  topic: string,
  partition: number,
  offset: string,
  cause: unknown,
): CellarstreamError {
  const why = cause instanceof Error ? cause.message : 'no Avro';
  return new CellarstreamError(
    'VALUE_UNREADABLE',
    `the value at offset ${offset} of partition ${partition} of ${topic} can't be read (${why}): ` +
      'check whether another program writes to the topic. To skip the message, continue at the offset after it',
    { cause, context: { topic, partition, offset } },
  );
}
