import { fstatSync } from 'node:fs';
import { lastValueFrom, merge, Subject } from 'rxjs';
import type { TopicPosition } from '../consumers/position.ts';
import { replay } from '../consumers/replay.ts';
import { jsonEvents, readAs } from '../consumers/topic.ts';
import type { Topic, ValueReader } from '../consumers/topic.ts';
import { statusTopics } from '../description/description.ts';
import type { ApiDescription } from '../description/description.ts';
import { valueSchemaOf } from '../schemas/events/envelope.ts';
import { topicNames, valueSubject } from '../schemas/events/topics.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { STARTUP_RETRIES, openKafkaClients } from '../sinks/open-kafka.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { isoInstant } from '../config/setting-parsers.ts';
import { eventLine, jsonLine } from './event-lines.ts';
import type { ReplayedValue } from './event-lines.ts';
import { LineWriter } from './line-writer.ts';
import { replayedPrefix, replaySettings, usageError, processSource } from './one-account.ts';
import { stopSignals } from './stop.ts';
import { ProgressLine, stdoutColors } from './terminal.ts';

export interface ReplayFlags {
  readonly account?: string;
  readonly from: string;
  readonly to: string;
  readonly follow?: boolean;
  readonly key?: string;
  readonly limit?: number;
  readonly byTime?: boolean;
  readonly pretty?: boolean;
}

const STDOUT = 1;
/** Minimum number of events between two progress lines. */
const EVENTS_A_LINE = 5_000;

/** `cellarstream replay`: prints the events of a topic between two positions, as JSON lines or as readable lines. It commits no offsets. */
export async function replayCommand(of: string, flags: ReplayFlags): Promise<void> {
  const from = positionOf('--from', flags.from, ['beginning', 'latest']);
  const to = positionOf('--to', flags.to, ['latest']);
  if (flags.follow && flags.to !== 'latest')
    throw usageError('--follow has no end: leave out --to');
  const config = replaySettings(processSource(), flags.account);
  const logger = await createLogger({ level: config.logLevel });
  const log = kafkaLogCreator(logger);
  const { kafka, registry } = openKafkaClients(config, { log, kafkaRetries: STARTUP_RETRIES });

  const prefix = await replayedPrefix(config, flags.account, kafka);
  const topic = await replayedTopic(of, prefix, config.description, registry);
  const { lists } = config.description;
  const statuses = lists.find((list) => list.statuses?.topic === of)?.statuses;
  const { key, limit = Infinity, byTime, pretty, follow } = flags;
  const lines = new LineWriter(process.stdout);
  const colors = stdoutColors();
  const progress = fstatSync(STDOUT).isFile() ? new ProgressLine() : undefined;
  const enough$ = new Subject<void>();
  let count = 0;

  const replayed$ = replay(
    {
      ...{ kafka, registry, topic, from },
      to: follow ? 'never' : to,
      ...(key !== undefined && { key }),
      ...(byTime && { order: 'time' }),
      stop$: merge(stopSignals(), enough$),
    },
    (message) => {
      if (count >= limit) return [];
      count += 1;
      if (count % EVENTS_A_LINE === 0) {
        progress?.show(`${count} events, up to ${new Date(message.timestamp).toISOString()}`);
      }
      const full = lines.write(
        pretty ? eventLine(message, of, colors, statuses) : jsonLine(message),
      );
      if (count >= limit) enough$.next();
      return full ?? [];
    },
  );
  try {
    if (limit > 0) await lastValueFrom(replayed$, { defaultValue: undefined });
  } finally {
    await lines.flush(); // also the events before an error
    progress?.end(`${count} ${count === 1 ? 'event' : 'events'}`);
    await registry.close();
  }
}

/**
 * Parses the value of a flag as a position in a topic: a keyword, a time, or an offset for each partition.
 *
 * @throws CellarstreamError `SETTINGS` if the text is not a valid position.
 */
function positionOf<Word extends string>(
  flag: string,
  text: string,
  keywords: readonly Word[],
): Word | Date | TopicPosition {
  const keyword = keywords.find((each) => each === text);
  if (keyword !== undefined) return keyword;
  if (/^\d+:\d+(,\d+:\d+)*$/.test(text)) {
    return Object.fromEntries(text.split(',').map((at) => at.split(':') as [string, string]));
  }
  const time = isoInstant.safeParse(text);
  if (time.success) return new Date(time.data);
  throw usageError(
    `${flag} ${text}: give ${keywords.join(', ')}, a date (2026-01-31, in UTC), a time with its zone (2026-01-31T08:00Z), or partition:offset,partition:offset`,
  );
}

/**
 * Returns the topic `<prefix>.<of>`: a list's events, a list's status changes, the dead letters, or any topic that has a schema of events
 * in the registry.
 *
 * @throws CellarstreamError `SETTINGS` for any other topic; `REGISTRY_UNREACHABLE`, `REGISTRY_REFUSED`.
 */
async function replayedTopic(
  of: string,
  prefix: string,
  description: ApiDescription,
  registry: Registry,
): Promise<Topic<ReplayedValue>> {
  const name = topicNames(prefix).records(of);
  const serviceTopics = [...statusTopics(description), 'dead-letters'];
  if (serviceTopics.includes(of)) return { name, values: asWritten };
  const resources = description.lists.map((list) => list.name);
  const isKnown = resources.includes(of);
  if (isKnown || (await hasEvents(name, registry))) return { name, values: jsonEvents };
  throw usageError(
    `${of}: the schema registry has no schema of events for ${name}. Give ${[...resources, ...serviceTopics].join(', ')}, or another topic under TOPIC_PREFIX that holds events`,
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

/** Decodes a message with its writer's schema, so that fields unknown to this version are shown. */
const asWritten: ValueReader<ReplayedValue> = (writer) => readAs<ReplayedValue>(writer)(writer);
