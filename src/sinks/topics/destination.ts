// Where a service's events go: topics that exist, and registered schemas.

import { isDeepStrictEqual } from 'node:util';
import type { ConfigWith, Resource } from '../../config/config.ts';
import type { RecordSchema } from '../../schemas/avro/avro-schema.ts';
import { deadLetterCodec, orderStatusChangeCodec } from '../../schemas/events/own-records.ts';
import { topicNames, topicTable, valueSubject } from '../../schemas/events/topics.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import type { Links } from '../client/open-kafka.ts';
import type { Asked } from '../client/brokers.ts';
import { openTopics } from './kafka-topics.ts';
import type { TopicsOptions } from './kafka-topics.ts';
import { findingText } from '../../schemas/events/topic-findings.ts';
import type { TopicFinding } from '../../schemas/events/topic-findings.ts';

/** A topic, and the registered schema of its values. */
export interface SchemaTopic {
  readonly topic: string;
  readonly schemaId: number;
}

/** Where events go: topics that exist, and the schemas of our own records. */
export interface Destination {
  /** The topic of a resource. */
  readonly records: (resource: Resource) => string;
  /** Undefined when no orders are read. */
  readonly statusChanges: SchemaTopic | undefined;
  readonly deadLetters: SchemaTopic;
  readonly cursors: string;
  readonly ledger: string;
  readonly certificates: string;
  /** Of each topic, as of the newest look at it. */
  readonly partitions: ReadonlyMap<string, number>;
  /** By topic, the most bytes of a batch, `max.message.bytes`, as of the newest look; where it is known. */
  readonly maxMessageBytes: ReadonlyMap<string, number>;
  /**
   * Looks at the topics that a resource is written to, and makes those that are gone. Gives what is unwise of them; of
   * topics that all resources share each thing once.
   *
   * @throws CellarstreamError `TOPIC_SETTINGS`, `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
   */
  readonly look: (resource: Resource) => Promise<readonly TopicFinding[]>;
}

/**
 * Makes topics and registers the schemas of our own records, or finds them as they should be. Nothing is made before
 * both Kafka and the registry have answered.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `REGISTRY_UNREACHABLE`, or for good `TOPIC_SETTINGS`,
 * `KAFKA_REFUSED`, `REGISTRY_REFUSED`, `TLS_REFUSED`.
 */
export async function openDestination(
  config: ConfigWith<'kafka' | 'registry'>,
  links: Links,
): Promise<Destination> {
  const { registry } = links;
  const names = topicNames(config.topics.prefix, config.topics.sharedPrefix);
  const deadLetters = await foundSchema(registry, names.deadLetters, deadLetterCodec.schema);
  const statusChanges = config.resources.includes('orders')
    ? await foundSchema(registry, names.orderStatusChanges, orderStatusChangeCodec.schema)
    : undefined;
  const topics = await lookedAt(config, links);
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

/** Looks whether a topic's schema is registered; what it isn't is registered when that is asked for. */
async function foundSchema(registry: Registry, topic: string, schema: RecordSchema) {
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

/** The topics, made or found; and looked at again, when a resource is taken over again. */
async function lookedAt(
  config: ConfigWith<'kafka'>,
  links: Links,
): Promise<Pick<Destination, 'partitions' | 'maxMessageBytes' | 'look'>> {
  const first = await openTopics(topicsOf(config, links));
  const partitions = new Map(first.partitions);
  const maxMessageBytes = new Map(first.maxMessageBytes);
  const { topics } = topicsOf(config, links);
  const resourceOf = new Map(topics(1).map(({ topic, resource }) => [topic, resource]));
  /** Resources whose topics have been looked at just now. */
  const fresh = new Set(config.resources);
  /** What was said of topics that all resources share. */
  const said = new Set<string>();
  const isNews = (finding: TopicFinding) => {
    const text = findingText(finding);
    return !said.has(text) && said.add(text);
  };
  const look = async (resource: Resource) => {
    if (fresh.delete(resource)) return doubtsOf(resource, first.doubts);
    const found = await openTopics(topicsOf(config, links, resource));
    for (const [topic, count] of found.partitions) partitions.set(topic, count);
    for (const [topic, bytes] of found.maxMessageBytes) maxMessageBytes.set(topic, bytes);
    return doubtsOf(resource, found.doubts);
  };
  const doubtsOf = (resource: Resource, doubts: readonly TopicFinding[]) =>
    doubts.filter((doubt) => {
      const owner = resourceOf.get(doubt.topic);
      return owner === resource || (owner === undefined && isNews(doubt));
    });
  return { partitions, maxMessageBytes, look };
}

/** The topics that the service writes to; with a resource those that are written to for it. */
export function topicsOf(
  { topics, resources, accountsDir }: ConfigWith<'kafka'>,
  { kafka, connections }: Asked,
  only?: Resource,
): TopicsOptions {
  const { prefix, sharedPrefix, partitions, replication } = topics;
  const isFleet = accountsDir !== undefined;
  return {
    kafka,
    ...(connections && { connections }),
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

/** The topics that all accounts of a fleet share: they are there before any account is. */
export function sharedTopicsOf(config: ConfigWith<'kafka'>, links: Asked): TopicsOptions {
  const { sharedPrefix } = config.topics;
  const { cursors, signals, ledger, certificates, fleet } = topicNames(sharedPrefix);
  const shared = [cursors, signals, ledger, certificates, fleet];
  const all = topicsOf(config, links);
  return {
    ...all,
    topics: (copies) => all.topics(copies).filter(({ topic }) => shared.includes(topic)),
  };
}
