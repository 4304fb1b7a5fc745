// Opens the topics and schemas that a service writes its events with.

import { isDeepStrictEqual } from 'node:util';
import type { ConfigWith, Resource } from '../../config/config.ts';
import { listsNamed } from '../../description/description.ts';
import type { RecordSchema } from '../../schemas/avro/avro-schema.ts';
import { deadLetterCodec } from '../../schemas/events/own-records.ts';
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

/** The topics that a service writes to, all of which exist, and the ids of the schemas that the service itself defines. */
export interface Destination {
  /** Returns the name of the topic with a list's events. */
  readonly records: (resource: Resource) => string;
  /** Topics of status changes by list. Lists without status fields are left out. */
  readonly statusChanges: ReadonlyMap<Resource, SchemaTopic>;
  readonly deadLetters: SchemaTopic;
  readonly cursors: string;
  readonly ledger: string;
  readonly certificates: string;
  /** Number of partitions of each topic, as of the topic's newest inspection. */
  readonly partitions: ReadonlyMap<string, number>;
  /** Largest batch that a topic accepts (`max.message.bytes`), in bytes, by topic. Topics for which it is unknown are left out. */
  readonly maxMessageBytes: ReadonlyMap<string, number>;
  /**
   * Inspects the topics that a list is written to, creates those that were deleted, and returns findings about unwise settings. The first
   * call for a list inspects nothing: it returns the findings from the start of the service. A finding about a topic that all lists share
   * is returned for one list only.
   *
   * @throws CellarstreamError `TOPIC_SETTINGS`, `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
   */
  readonly inspect: (resource: Resource) => Promise<readonly TopicFinding[]>;
}

/**
 * Creates the missing topics, inspects the existing ones, and registers the missing schemas that the service itself defines. Nothing is
 * created before Kafka and the registry have both responded.
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
  const statusSchemas = new Map<Resource, () => Promise<SchemaTopic>>();
  for (const { name, statuses } of listsNamed(config.description, config.resources)) {
    if (!statuses) continue;
    const topic = names.statusChanges(statuses);
    statusSchemas.set(name, await findSchema(registry, topic, statuses.schema));
  }
  const topics = await inspectedTopics(config, links);
  const statusChanges = new Map<Resource, SchemaTopic>();
  for (const [name, registered] of statusSchemas) statusChanges.set(name, await registered());
  return {
    records: names.records,
    statusChanges,
    deadLetters: await deadLetters(),
    cursors: names.cursors,
    ledger: names.ledger,
    certificates: names.certificates,
    ...topics,
  };
}

/**
 * Compares `schema` with the newest schema that the registry has for the values of a topic. The returned function registers `schema` if the
 * two differ, and resolves with the topic and the registry id of `schema`.
 */
async function findSchema(registry: Registry, topic: string, schema: RecordSchema) {
  const subject = valueSubject(topic);
  const newest = await registry.latest(subject);
  const isThere = isDeepStrictEqual(newest?.schema, schema);
  return async (): Promise<SchemaTopic> => ({
    topic,
    schemaId: isThere ? newest!.id : await registry.register(subject, schema),
  });
}

/** Creates or inspects all topics, and returns their properties and the function {@link Destination.inspect}. */
async function inspectedTopics(config: ConfigWith<'kafka'>, links: KafkaClients) {
  const options = topicsOf(config, links);
  const first = await openTopics(options);
  const partitions = new Map(first.partitions);
  const maxMessageBytes = new Map(first.maxMessageBytes);
  const resourceOf = new Map(options.topics(1).map(({ topic, resource }) => [topic, resource]));
  /** Lists for which `inspect` has not been called yet. The first call returns what was found when the service started. */
  const fresh = new Set(config.resources);
  /** Texts of the findings about shared topics that `inspect` has already returned for a list, so that it does not return them again. */
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

/**
 * Returns the options for opening the topics that the service writes to. @param only Limits the topics to those of this list and those that
 * all lists share.
 */
export function topicsOf(
  { topics, resources, description, accountsDir }: ConfigWith<'kafka'>,
  { kafka, connections }: ClusterAccess,
  only?: Resource,
): TopicsOptions {
  const { prefix, sharedPrefix, partitions, replication } = topics;
  const isFleet = accountsDir !== undefined;
  const lists = listsNamed(description, resources);
  return {
    kafka,
    connections,
    replication,
    topics: (copies) =>
      topicTable({ prefix, sharedPrefix, isFleet, lists, partitions, replication: copies }).filter(
        ({ resource }) => only === undefined || resource === undefined || resource === only,
      ),
  };
}

/** Returns the options for opening the topics that all accounts of a fleet share. These topics must exist before an account is served. */
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
