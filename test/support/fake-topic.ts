import type { Kafka, KafkaMessage } from 'kafkajs';
import type { Topic } from '../../src/consumers/topic.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import { frame } from '../../src/schemas/registry/wire.ts';

/** Schemas of these ids can't be resolved, or the registry is away when they are asked for. */
export const UNRESOLVED = 8;
export const AWAY = 9;

/** A registry whose schemas are called by their ids. */
export const fakeRegistry = {
  schemaById: (id: number) =>
    id === AWAY
      ? Promise.reject(new CellarstreamError('REGISTRY_UNREACHABLE', 'the registry is away'))
      : Promise.resolve<RecordSchema>({ type: 'record', name: `Schema${id}`, fields: [] }),
} as Partial<Registry> as Registry;

/** A topic whose values are JSON behind the id of their schema. */
export function jsonTopic<T>(name = 't'): Topic<T> {
  return {
    name,
    values: ({ name: schema }) => {
      if (schema === `Schema${UNRESOLVED}`) throw new TypeError(`${schema} can't be resolved`);
      return (bytes) => JSON.parse(Buffer.from(bytes).toString()) as T;
    },
  };
}

/** A message of such a topic; its key is that of the record. */
export function jsonMessage(
  offset: number,
  value: unknown,
  { key = 'k', schemaId = 1 }: { readonly key?: string; readonly schemaId?: number } = {},
): KafkaMessage {
  return {
    offset: String(offset),
    key: Buffer.from(key),
    value: frame(schemaId, Buffer.from(JSON.stringify(value))),
    timestamp: '0',
    attributes: 0,
    headers: {},
  };
}

/** A Kafka that knows how far one topic of one partition goes, once `asked` has been waited for. */
export function kafkaUpTo(end: number, name = 't', asked: Promise<unknown> = Promise.resolve()) {
  const admin = {
    connect: () => asked,
    disconnect: () => Promise.resolve(),
    listTopics: () => Promise.resolve([name]),
    fetchTopicOffsets: () => Promise.resolve([{ partition: 0, low: '0', high: String(end) }]),
  };
  return { admin: () => admin } as object as Kafka;
}
