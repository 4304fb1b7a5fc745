import type { ListDescription } from '../../description/description.ts';
import { avroKey, recordKeySchema } from '../../schemas/events/record-key.ts';
import { keySubject } from '../../schemas/events/topics.ts';
import type { Registry } from '../../schemas/registry/registry.ts';

/** Encoders of record keys as message keys in Avro, one for each topic. They return undefined if the list has no such topic. */
export interface RecordKeys {
  readonly events: (key: string) => Buffer | undefined;
  readonly statusChanges: (key: string) => Buffer | undefined;
}

/**
 * Registers the schema of a list's keys under the `-key` subjects of its topics, and returns the encoders of the keys.
 *
 * @throws CellarstreamError `REGISTRY_UNREACHABLE`, `REGISTRY_REFUSED`, `TLS_REFUSED`.
 */
export async function avroKeys(
  registry: Registry,
  { name, namespace }: Pick<ListDescription, 'name' | 'namespace'>,
  keyFields: readonly string[],
  topics: { readonly events: string; readonly statusChanges: string | undefined },
): Promise<RecordKeys> {
  const schema = recordKeySchema(name, keyFields, namespace);
  const inTopic = async (topic: string | undefined) => {
    if (topic === undefined) return () => undefined;
    const schemaId = await registry.register(keySubject(topic), schema);
    return (key: string) => avroKey(schemaId, key, keyFields.length);
  };
  const [events, statusChanges] = await Promise.all([
    inTopic(topics.events),
    inTopic(topics.statusChanges),
  ]);
  return { events, statusChanges };
}
