import { RESOURCES } from '../config/config.ts';
import { readAs, jsonEvents } from '../consumers/topic.ts';
import type { Topic, ValueReader } from '../consumers/topic.ts';
import { CellarstreamError } from '../core/errors.ts';
import { valueSchemaOf } from '../schemas/events/envelope.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { topicNames, valueSubject } from '../schemas/events/topics.ts';
import type { Replayed } from './event-lines.ts';

/** Topics of our own records, by what is behind the prefix. */
const OWN = ['order-status-changes', 'dead-letters'];

/**
 * The topic that is meant by what stands behind its prefix: a list that is known, one of our own records, or any whose
 * schema in the registry is that of events.
 *
 * @throws CellarstreamError `SETTINGS` for another one; `REGISTRY_UNREACHABLE`, `REGISTRY_REFUSED`.
 */
export async function replayedTopic(
  of: string,
  prefix: string,
  registry: Registry,
): Promise<Topic<Replayed>> {
  const name = topicNames(prefix).records(of);
  if (OWN.includes(of)) return { name, values: asWritten };
  const isKnown = RESOURCES.some((resource) => resource === of);
  if (isKnown || (await hasEvents(name, registry))) return { name, values: jsonEvents };
  throw new CellarstreamError(
    'SETTINGS',
    `${of}: give ${[...RESOURCES, ...OWN].join(', ')}, or another topic under TOPIC_PREFIX that holds events: the registry has no schema of events for ${name}`,
  );
}

async function hasEvents(topic: string, registry: Registry): Promise<boolean> {
  const latest = await registry.latest(valueSubject(topic));
  if (!latest) return false;
  try {
    valueSchemaOf(latest.schema);
    return true;
  } catch {
    return false; // of another program
  }
}

/** By the schema that wrote it: what is new in it shows. */
const asWritten: ValueReader<Replayed> = (writer) => readAs<Replayed>(writer)(writer);
