import { Kafka, logLevel } from 'kafkajs';
import type { KafkaConfig as KafkaJsConfig, logCreator } from 'kafkajs';
import type { ConfigWith } from './config.ts';
import { deadLetterCodec } from './schemas/dead-letter.ts';
import { createEnvelopeCodec, envelopeCodec } from './schemas/envelope.ts';
import type { EnvelopeCodec } from './schemas/envelope.ts';
import { orderStatusChangeCodec } from './schemas/order-status-change.ts';
import { orderSchema } from './schemas/order.ts';
import { createRegistry } from './schemas/registry.ts';
import type { Registry } from './schemas/registry.ts';
import { topicNames, topicTable, valueSubject } from './schemas/topics.ts';
import { unframe } from './schemas/wire.ts';
import { ensureTopics } from './sinks/kafka-topics.ts';
import type { TopicsOptions } from './sinks/kafka-topics.ts';
import type { SchemaTopic } from './sinks/messages.ts';
import type { PublishedImage } from './sinks/task-log.ts';

/** Where events go: topics that exist, and schemas that are registered. */
export interface Destination {
  readonly orders: SchemaTopic;
  readonly statusChanges: SchemaTopic;
  readonly deadLetters: SchemaTopic;
  readonly cursors: string;
  readonly partitions: ReadonlyMap<string, number>;
  /** Of the orders' events, under the schema that they are published with now. */
  readonly codec: EnvelopeCodec;
  /** The codec of events written under any registered schema. */
  readonly codecOf: (schemaId: number) => Promise<EnvelopeCodec>;
  /**
   * A stored image in the bytes of the schema that is current: a schema that has grown since
   * changes no record. Its own schema must have been asked for with `codecOf` before.
   */
  readonly currentImage: (image: { readonly schemaId: number; readonly bytes: Buffer }) => Buffer;
}

export interface Links {
  readonly kafka: Kafka;
  readonly registry: Registry;
}

/** How often kafkajs asks again by itself before an error comes out: for some four seconds. */
const KAFKA_RETRIES = 7;

/** Connects to nothing yet. `kafkaRetries` is for those who want to know soon. */
export function openLinks(
  config: ConfigWith<'kafka' | 'registry'>,
  {
    log,
    kafkaRetries = KAFKA_RETRIES,
  }: { log?: logCreator | undefined; kafkaRetries?: number } = {},
): Links {
  const { brokers, ssl, sasl } = config.kafka;
  const { url, auth, ca } = config.registry;
  const kafka = new Kafka({
    clientId: 'cellarstream',
    brokers: [...brokers],
    ssl: ssl && (ssl.ca === undefined ? true : { ca: ssl.ca }),
    ...(sasl && {
      sasl: {
        mechanism: sasl.mechanism,
        username: sasl.username,
        password: sasl.password.reveal(),
      } as NonNullable<KafkaJsConfig['sasl']>,
    }),
    // Transactions one after the other meet the end of the one before: ask again soon. Not for
    // ever: in the end the task begins again from what was really committed.
    retry: { initialRetryTime: 30, multiplier: 2, maxRetryTime: 5_000, retries: kafkaRetries },
    logLevel: logLevel.INFO,
    ...(log && { logCreator: log }),
  });
  const registry = createRegistry({
    url,
    ...(auth && { username: auth.username, password: auth.password.reveal() }),
    ...(ca !== undefined && { ca }),
  });
  return { kafka, registry };
}

/**
 * Makes topics and registers schemas, or finds them as they should be.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `REGISTRY_UNREACHABLE`, or for good
 * `TOPIC_SETTINGS`, `REGISTRY_REFUSED`.
 */
export async function openDestination(
  config: ConfigWith<'kafka' | 'registry'>,
  { kafka, registry }: Links,
): Promise<Destination> {
  const names = topicNames(config.topics.prefix);
  const partitions = await ensureTopics(topicsOf(config, kafka));

  const codec = createEnvelopeCodec(orderSchema, 'orders');
  const register = async (
    topic: string,
    schema: EnvelopeCodec['schema'],
  ): Promise<SchemaTopic> => ({
    topic,
    schemaId: await registry.register(valueSubject(topic), schema),
  });
  const orders = await register(names.records('orders'), codec.schema);
  const known = new Map([[orders.schemaId, codec]]);
  return {
    orders,
    statusChanges: await register(names.orderStatusChanges, orderStatusChangeCodec.schema),
    deadLetters: await register(names.deadLetters, deadLetterCodec.schema),
    cursors: names.cursors,
    partitions,
    codec,
    currentImage: ({ schemaId, bytes }) => {
      if (schemaId === orders.schemaId) return bytes;
      const written = known.get(schemaId);
      if (!written) throw new Error(`the schema ${schemaId} of a stored image was not loaded`);
      return codec.values.encode(written.values.decode(bytes));
    },
    codecOf: async (schemaId) => {
      const found = known.get(schemaId) ?? envelopeCodec(await registry.schemaById(schemaId));
      known.set(schemaId, found);
      return found;
    },
  };
}

/** The topics that the service writes to. */
export function topicsOf({ topics }: ConfigWith<'kafka'>, kafka: Kafka): TopicsOptions {
  const { prefix, partitions, replication } = topics;
  return {
    kafka,
    replication,
    topics: (copies) =>
      topicTable({ prefix, resources: ['orders'], partitions, replication: copies }),
  };
}

/** The image that an event of the orders' topic left behind. */
export async function readImage(destination: Destination, value: Buffer): Promise<PublishedImage> {
  const { schemaId, payload } = unframe(value);
  const { after, sequence } = (await destination.codecOf(schemaId)).images(payload);
  return { sequence, image: after && { schemaId, bytes: after } };
}
