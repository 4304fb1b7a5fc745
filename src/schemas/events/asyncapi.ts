import type { RecordSchema } from '../avro/avro-schema.ts';
import { deadLetterCodec, statusChangeType } from './own-records.ts';
import { topicNames, topicTable, type ListTopics } from './topics.ts';

interface AsyncApiOptions {
  readonly prefix: string;
  readonly lists: readonly (ListTopics & {
    readonly statuses: { readonly topic: string; readonly schema: RecordSchema } | undefined;
  })[];
  /** Version of this package. */
  readonly version: string;
  /** Addresses of the brokers, as `host:port`. */
  readonly brokers: readonly string[];
  readonly isTls: boolean;
  readonly registryUrl: string;
  /** Returns the newest registered key and value schemas of a topic; each undefined if none is registered. */
  readonly schemasOf: (topic: string) => {
    readonly key: RecordSchema | undefined;
    readonly value: RecordSchema | undefined;
  };
}

const AVRO = 'application/vnd.apache.avro+json;version=1.9.0';
const BINDING = { bindingVersion: '0.5.0' };

/** Returns the JSON Schema of the message headers of a status change: those of CloudEvents 1.0 in binary mode. */
const cloudEvent = (schema: RecordSchema) => ({
  type: 'object',
  required: ['ce_id', 'ce_type', 'ce_source', 'ce_specversion', 'ce_time'],
  properties: {
    ce_id: { type: 'string', description: 'The same as event_id.' },
    ce_type: { type: 'string', const: statusChangeType(schema) },
    ce_source: { type: 'string' },
    ce_specversion: { type: 'string', const: '1.0' },
    ce_time: { type: 'string', format: 'date-time' },
  },
});

/**
 * Returns an AsyncAPI 3.0 document that describes the topics of lists, of status changes and of dead letters. The message of a list whose
 * schema is not registered yet has no payload schema.
 */
export function asyncApiDocument(options: AsyncApiOptions): object {
  const { prefix, lists, version, brokers, isTls, registryUrl, schemasOf } = options;
  const names = topicNames(prefix);
  const statusSchemas = new Map(
    lists.flatMap(({ statuses }) =>
      statuses ? [[names.statusChanges(statuses), statuses.schema]] : [],
    ),
  );
  const described = new Map([...statusSchemas, [names.deadLetters, deadLetterCodec.schema]]);
  const listOf = new Map(lists.map(({ name }) => [names.records(name), name]));
  const topics = topicTable({ prefix, lists, partitions: 1, replication: 1 }).filter(
    ({ topic }) => listOf.has(topic) || described.has(topic),
  );
  const channels = topics.map(({ topic, configEntries }) => {
    const list = listOf.get(topic);
    const { key, value = described.get(topic) } = schemasOf(topic);
    const statusSchema = statusSchemas.get(topic);
    const settings = Object.fromEntries(configEntries.map((entry) => [entry.name, entry.value]));
    const event = {
      name: value?.name ?? 'Envelope',
      contentType: 'application/vnd.confluent.avro',
      ...(value?.doc && { summary: value.doc }),
      ...(statusSchema && { headers: cloudEvent(statusSchema) }),
      ...(value && { payload: { schemaFormat: AVRO, schema: value } }),
      bindings: {
        kafka: {
          key: key ? { schemaFormat: AVRO, schema: key } : { type: 'string' },
          schemaIdLocation: 'payload',
          schemaIdPayloadEncoding: 'confluent',
          ...BINDING,
        },
      },
    };
    const tombstone = {
      name: 'Tombstone',
      summary: 'Null, after the event of a deletion.',
      payload: { type: 'null' },
    };
    const channel = {
      address: topic,
      description: list ? `Changes of ${list}.` : value!.doc,
      servers: brokers.map((_, nth) => ({ $ref: `#/servers/kafka-${nth}` })),
      messages: { event, ...(list && { tombstone }) },
      bindings: { kafka: { topic, topicConfiguration: topicConfiguration(settings), ...BINDING } },
    };
    return [topic.slice(prefix.length + 1), channel] as const;
  });
  const bindings = { kafka: { schemaRegistryUrl: registryUrl, ...BINDING } };
  const protocol = isTls ? 'kafka-secure' : 'kafka';
  return {
    asyncapi: '3.0.0',
    info: {
      title: `Cellarstream: topics under ${prefix}`,
      version,
      description: 'Change events of a paged REST API. Values are in the Confluent wire format.',
    },
    servers: Object.fromEntries(
      brokers.map((host, nth) => [`kafka-${nth}`, { host, protocol, bindings }]),
    ),
    channels: Object.fromEntries(channels),
    operations: Object.fromEntries(
      channels.map(([name]) => [
        `send-${name}`,
        { action: 'send', channel: { $ref: `#/channels/${name}` } },
      ]),
    ),
  };
}

/**
 * Returns `cleanup.policy` and, if the topic has it, `retention.ms`, converted from text to the types that AsyncAPI's Kafka binding
 * requires.
 */
function topicConfiguration(settings: Readonly<Record<string, string>>): object {
  const retention = settings['retention.ms'];
  return {
    'cleanup.policy': [settings['cleanup.policy']],
    ...(retention !== undefined && { 'retention.ms': Number(retention) }),
  };
}
