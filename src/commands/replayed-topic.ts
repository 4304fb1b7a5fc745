import { RESOURCES } from '../config/config.ts';
import { readAs, jsonEvents } from '../consumers/topic.ts';
import type { Topic, ValueReader } from '../consumers/topic.ts';
import { CellarstreamError } from '../core/errors.ts';
import { valueSchemaOf } from '../schemas/events/envelope.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { topicNames, valueSubject } from '../schemas/events/topics.ts';
import type { ReplayedValue } from './event-lines.ts';

/** Topics of the service's own messages that can be replayed, by their name after the prefix. */
const SERVICE_TOPICS = ['order-status-changes', 'dead-letters'];

/**
 * Returns the topic with this name after the prefix: the events of a known list, one of the service's own topics, or any topic whose schema
 * in the registry is that of events.
 *
 * @throws CellarstreamError `SETTINGS` for any other topic; `REGISTRY_UNREACHABLE`, `REGISTRY_REFUSED`.
 */
export async function replayedTopic(
  of: string,
  prefix: string,
  registry: Registry,
): Promise<Topic<ReplayedValue>> {
  const name = topicNames(prefix).records(of);
  if (SERVICE_TOPICS.includes(of)) return { name, values: asWritten };
  const isKnown = RESOURCES.some((resource) => resource === of);
  if (isKnown || (await hasEvents(name, registry))) return { name, values: jsonEvents };
  throw new CellarstreamError(
    'SETTINGS',
    `${of}: give ${[...RESOURCES, ...SERVICE_TOPICS].join(', ')}, or another topic under TOPIC_PREFIX that holds events: the registry has no schema of events for ${name}`,
  );
}

async function hasEvents(topic: string, registry: Registry): Promise<boolean> {
  const latest = await registry.latest(valueSubject(topic));
  if (!latest) return false;
  try {
    valueSchemaOf(latest.schema);
    return true;
  } catch {
    return false; // written by another program
  }
}

/** Decodes a message with the schema that it was written with, so that fields unknown to this version are shown. */
const asWritten: ValueReader<ReplayedValue> = (writer) => readAs<ReplayedValue>(writer)(writer);
