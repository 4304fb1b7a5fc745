import { expect, onTestFinished, vi } from 'vitest';
import type { Topic } from '../../src/consumers/topic.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import { frame } from '../../src/schemas/registry/wire.ts';
import { kafkaOf, ScriptedCluster } from './scripted-cluster.ts';

/** Id of a schema that can't be resolved. */
export const UNRESOLVED = 8;
/** Id of a schema for which the registry can't be reached. */
export const AWAY = 9;

/** A registry whose schema `n` is an empty record with the name `Schema<n>`. */
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

/** A message of a topic. */
export interface PutMessage {
  readonly key: string;
  readonly value: Buffer | null;
}

/** A message of such a topic; its key is that of the record. */
export function jsonMessage(
  value: unknown,
  { key = 'k', schemaId = 1 }: { readonly key?: string; readonly schemaId?: number } = {},
): PutMessage {
  return { key, value: frame(schemaId, Buffer.from(JSON.stringify(value))) };
}

/** A cluster with one topic, until the test ends; every client must have disconnected by then. */
export async function kafkaWith(topic = 't', partitions = 1) {
  const cluster = await ScriptedCluster.start({ topics: { [topic]: partitions }, maxWaitMs: 20 });
  const kafka = kafkaOf(cluster);
  /** Resolves when no connection is open. */
  const left = () => vi.waitUntil(() => cluster.open === 0, { interval: 5, timeout: 5_000 });
  onTestFinished(async () => {
    await left().finally(() => cluster.close());
    expect(cluster.errors).toEqual([]);
  });
  const put = (partition: number, ...messages: readonly PutMessage[]) =>
    cluster.put(topic, partition, ...messages);
  return { cluster, kafka, put, left };
}
