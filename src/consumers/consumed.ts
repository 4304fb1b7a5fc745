// Decodes messages of a topic with the schemas that the registry has for them.

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

/** `prepare` fetches schemas, `read` decodes values synchronously. */
export interface MessageReader<T> {
  /**
   * Fetches missing schemas of these messages. A malformed message or unusable schema fails in {@link read}, so that earlier messages are
   * delivered first.
   *
   * @throws CellarstreamError `REGISTRY_UNREACHABLE` if a retry may succeed, else `REGISTRY_REFUSED`.
   */
  prepare(messages: readonly KafkaMessage[]): Promise<void>;
  /**
   * Decodes a prepared message.
   *
   * @throws CellarstreamError `VALUE_UNREADABLE`, with `partition` and `offset` in its context.
   */
  read(partition: number, message: KafkaMessage): Consumed<T>;
}

export function messageReader<T>(registry: Registry, topic: Topic<T>): MessageReader<T> {
  const decoders = new Map<number, (avro: Uint8Array) => T>();

  const framed = (partition: number, { offset, value }: KafkaMessage) => {
    try {
      return value && unframe(value);
    } catch (cause) {
      throw unreadable(topic.name, partition, offset, cause);
    }
  };
  return {
    prepare: async (messages) => {
      for (const { value } of messages) {
        if (value === null) continue;
        let schemaId: number;
        try {
          ({ schemaId } = unframe(value));
        } catch {
          continue;
        }
        if (decoders.has(schemaId)) continue;
        const writer = await registry.schemaById(schemaId);
        try {
          decoders.set(schemaId, topic.values(writer));
        } catch (cause) {
          decoders.set(schemaId, () => {
            throw cause;
          });
        }
      }
    },
    read: (partition, message) => {
      const { key, offset, timestamp, headers } = message;
      const frame = framed(partition, message);
      let value: T | null;
      try {
        value = frame && decoders.get(frame.schemaId)!(frame.payload);
      } catch (cause) {
        throw unreadable(topic.name, partition, offset, cause);
      }
      return {
        topic: topic.name,
        partition,
        offset,
        timestamp: Number(timestamp),
        key: key && keyText(key),
        headers: texts(headers),
        value,
      };
    },
  };
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
      'does another program write to the topic? To skip the message, go on from the offset after it',
    { cause, context: { topic, partition, offset } },
  );
}
