import { Kafka, logLevel } from 'kafkajs';
import type { KafkaConfig as KafkaJsConfig, logCreator } from 'kafkajs';
import type { ConfigWith, Resource } from './config.ts';
import type { RecordSchema } from './schemas/avro-schema.ts';
import { deadLetterCodec } from './schemas/dead-letter.ts';
import { orderStatusChangeCodec } from './schemas/order-status-change.ts';
import { createRegistry } from './schemas/registry.ts';
import type { Registry } from './schemas/registry.ts';
import { topicNames, topicTable, valueSubject } from './schemas/topics.ts';
import { ensureTopics } from './sinks/kafka-topics.ts';
import type { TopicsOptions } from './sinks/kafka-topics.ts';
import type { SchemaTopic } from './sinks/messages.ts';

/** Where events go: topics that exist, and the schemas of our own records. */
export interface Destination {
  /** The topic of a resource. */
  readonly records: (resource: Resource) => string;
  /** Undefined when no orders are read. */
  readonly statusChanges: SchemaTopic | undefined;
  readonly deadLetters: SchemaTopic;
  readonly cursors: string;
  readonly partitions: ReadonlyMap<string, number>;
}

export interface Links {
  readonly kafka: Kafka;
  readonly registry: Registry;
}

/** How often kafkajs asks again by itself before an error comes out: for some four seconds. */
const KAFKA_RETRIES = 7;

/** How long before its end a login is renewed, ms. */
const LOG_IN_BEFORE_MS = 1_000;

export interface KafkaOptions {
  readonly log?: logCreator | undefined;
  /** For those who want to know soon. */
  readonly kafkaRetries?: number;
}

/** Connects to nothing yet. */
export function openKafka(config: ConfigWith<'kafka'>, options: KafkaOptions = {}): Kafka {
  const { log, kafkaRetries = KAFKA_RETRIES } = options;
  const { brokers, ssl, sasl } = config.kafka;
  return new Kafka({
    clientId: 'cellarstream',
    brokers: [...brokers],
    // Said, because an environment variable of Node's would turn it off.
    ssl: ssl && { rejectUnauthorized: true, ...(ssl.ca !== undefined && { ca: ssl.ca }) },
    ...(sasl && {
      sasl: {
        mechanism: sasl.mechanism,
        username: sasl.username,
        password: sasl.password.reveal(),
      } as NonNullable<KafkaJsConfig['sasl']>,
    }),
    // kafkajs logs in again so long before a login is over: with its own 10 s, where logins last 3 s, before every
    // request, which brokers refuse.
    reauthenticationThreshold: LOG_IN_BEFORE_MS,
    // Transactions one after the other meet the end of the one before: ask again soon. Not for
    // ever: in the end the task begins again from what was really committed.
    retry: { initialRetryTime: 30, multiplier: 2, maxRetryTime: 5_000, retries: kafkaRetries },
    logLevel: logLevel.INFO,
    ...(log && { logCreator: log }),
  });
}

/** Connects to nothing yet. */
export function openLinks(
  config: ConfigWith<'kafka' | 'registry'>,
  options: KafkaOptions = {},
): Links {
  const { url, auth, ca } = config.registry;
  const registry = createRegistry({
    url,
    ...(auth && { username: auth.username, password: auth.password.reveal() }),
    ...(ca !== undefined && { ca }),
  });
  return { kafka: openKafka(config, options), registry };
}

/**
 * Makes topics and registers the schemas of our own records, or finds them as they should be.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `REGISTRY_UNREACHABLE`, or for good `TOPIC_SETTINGS`,
 * `KAFKA_REFUSED`, `REGISTRY_REFUSED`, `TLS_REFUSED`.
 */
export async function openDestination(
  config: ConfigWith<'kafka' | 'registry'>,
  { kafka, registry }: Links,
): Promise<Destination> {
  const names = topicNames(config.topics.prefix);
  const partitions = await ensureTopics(topicsOf(config, kafka));

  const register = async (topic: string, schema: RecordSchema): Promise<SchemaTopic> => ({
    topic,
    schemaId: await registry.register(valueSubject(topic), schema),
  });
  return {
    records: names.records,
    statusChanges: config.resources.includes('orders')
      ? await register(names.orderStatusChanges, orderStatusChangeCodec.schema)
      : undefined,
    deadLetters: await register(names.deadLetters, deadLetterCodec.schema),
    cursors: names.cursors,
    partitions,
  };
}

/** The topics that the service writes to. */
export function topicsOf({ topics, resources }: ConfigWith<'kafka'>, kafka: Kafka): TopicsOptions {
  const { prefix, partitions, replication } = topics;
  return {
    kafka,
    replication,
    topics: (copies) => topicTable({ prefix, resources, partitions, replication: copies }),
  };
}
