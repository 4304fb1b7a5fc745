// Opens the topics and schemas that a service writes its events with.

import { isDeepStrictEqual } from 'node:util';
import type { ConfigWith, Resource } from '../../config/config.ts';
import type { RecordSchema } from '../../schemas/avro/avro-schema.ts';
import { deadLetterCodec, orderStatusChangeCodec } from '../../schemas/events/own-records.ts';
import { topicNames, topicTable, valueSubject } from '../../schemas/events/topics.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import type { KafkaClients } from '../open-kafka.ts';
import type { ClusterAccess } from '../../kafka/client/brokers.ts';
import { openTopics } from './kafka-topics.ts';
import type { TopicsOptions } from './kafka-topics.ts';
import { findingText } from '../../schemas/events/topic-findings.ts';
import type { TopicFinding } from '../../schemas/events/topic-findings.ts';

export interface SchemaTopic {
  readonly topic: string;
  readonly schemaId: number;
}

/** The existing topics that a service writes to, and the schemas of the record types that it defines itself. */
export interface Destination {
  /** Returns the topic of a list's events. */
  readonly records: (resource: Resource) => string;
  /** Topic of order status changes; undefined if the list of orders is not read. */
  readonly statusChanges: SchemaTopic | undefined;
  readonly deadLetters: SchemaTopic;
  readonly cursors: string;
  readonly ledger: string;
  readonly certificates: string;
  /** Number of partitions by topic, as of its newest inspection. */
  readonly partitions: ReadonlyMap<string, number>;
  /** Largest batch by topic in bytes (`max.message.bytes`), where it is known. */
  readonly maxMessageBytes: ReadonlyMap<string, number>;
  /**
   * Inspects the topics that a list is written to, and creates those that were deleted. Returns findings about unwise settings; each
   * finding about a topic that all lists share is returned only once.
   *
   * @throws CellarstreamError `TOPIC_SETTINGS`, `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
   */
  readonly inspect: (resource: Resource) => Promise<readonly TopicFinding[]>;
}

/**
 * Creates the topics and registers the schemas of the service's own record types, or verifies the existing ones. Nothing is created before
 * both Kafka and the registry have responded.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `REGISTRY_UNREACHABLE`; or, if no retry can succeed, `TOPIC_SETTINGS`, `KAFKA_REFUSED`,
 * `REGISTRY_REFUSED`, `TLS_REFUSED`.
 */
export async function openDestination(
  config: ConfigWith<'kafka' | 'registry'>,
  links: KafkaClients,
): Promise<Destination> {
  const { registry } = links;
  const names = topicNames(config.topics.prefix, config.topics.sharedPrefix);
  const deadLetters = await findSchema(registry, names.deadLetters, deadLetterCodec.schema);
  const statusChanges = config.resources.includes('orders')
    ? await findSchema(registry, names.orderStatusChanges, orderStatusChangeCodec.schema)
    : undefined;
  const topics = await inspectedTopics(config, links);
  return {
    records: names.records,
    statusChanges: await statusChanges?.registered(),
    deadLetters: await deadLetters.registered(),
    cursors: names.cursors,
    ledger: names.ledger,
    certificates: names.certificates,
    ...topics,
  };
}

/** Checks whether the schema of a topic is registered. The returned function `registered` registers it if it is not, and returns its id. */
async function findSchema(registry: Registry, topic: string, schema: RecordSchema) {
  const subject = valueSubject(topic);
  const newest = await registry.latest(subject);
  const isThere = isDeepStrictEqual(newest?.schema, schema);
  return {
    registered: async (): Promise<SchemaTopic> => ({
      topic,
      schemaId: isThere ? newest!.id : await registry.register(subject, schema),
    }),
  };
}

/** Creates or verifies all topics. The returned `inspect` does so again for a list that is claimed again. */
async function inspectedTopics(
  config: ConfigWith<'kafka'>,
  links: KafkaClients,
): Promise<Pick<Destination, 'partitions' | 'maxMessageBytes' | 'inspect'>> {
  const first = await openTopics(topicsOf(config, links));
  const partitions = new Map(first.partitions);
  const maxMessageBytes = new Map(first.maxMessageBytes);
  const { topics } = topicsOf(config, links);
  const resourceOf = new Map(topics(1).map(({ topic, resource }) => [topic, resource]));
  /** Lists for which `inspect` has not been called yet: the first call returns the findings of the start. */
  const fresh = new Set(config.resources);
  /** Texts of the findings about shared topics that were returned. */
  const reportedTopics = new Set<string>();
  const isNews = (finding: TopicFinding) => {
    const text = findingText(finding);
    return !reportedTopics.has(text) && reportedTopics.add(text);
  };
  const inspect = async (resource: Resource) => {
    if (fresh.delete(resource)) return doubtsOf(resource, first.warnings);
    const found = await openTopics(topicsOf(config, links, resource));
    for (const [topic, count] of found.partitions) partitions.set(topic, count);
    for (const [topic, bytes] of found.maxMessageBytes) maxMessageBytes.set(topic, bytes);
    return doubtsOf(resource, found.warnings);
  };
  const doubtsOf = (resource: Resource, doubts: readonly TopicFinding[]) =>
    doubts.filter((doubt) => {
      const owner = resourceOf.get(doubt.topic);
      return owner === resource || (owner === undefined && isNews(doubt));
    });
  return { partitions, maxMessageBytes, inspect };
}

/** Returns the options for the topics that the service writes to; with `only`, for the topics of that list and the shared ones. */
export function topicsOf(
  { topics, resources, accountsDir }: ConfigWith<'kafka'>,
  { kafka, connections }: ClusterAccess,
  only?: Resource,
): TopicsOptions {
  const { prefix, sharedPrefix, partitions, replication } = topics;
  const isFleet = accountsDir !== undefined;
  return {
    kafka,
    connections,
    replication,
    topics: (copies) =>
      topicTable({
        ...{ prefix, sharedPrefix, isFleet, resources, partitions },
        replication: copies,
      }).filter(
        ({ resource }) => only === undefined || resource === undefined || resource === only,
      ),
  };
}

/** Returns the options for the topics that all accounts of a fleet share, and that must exist before any account is served. */
export function sharedTopicsOf(config: ConfigWith<'kafka'>, links: ClusterAccess): TopicsOptions {
  const { sharedPrefix } = config.topics;
  const { cursors, signals, ledger, certificates, fleet } = topicNames(sharedPrefix);
  const shared = [cursors, signals, ledger, certificates, fleet];
  const all = topicsOf(config, links);
  return {
    ...all,
    topics: (copies) => all.topics(copies).filter(({ topic }) => shared.includes(topic)),
  };
}
