import { fstatSync } from 'node:fs';
import pc from 'picocolors';
import { lastValueFrom, merge, Subject } from 'rxjs';
import type { TopicPosition } from '../consumers/position.ts';
import { replay } from '../consumers/replay.ts';
import { STARTUP_RETRIES, openKafkaClients } from '../sinks/open-kafka.ts';
import { CellarstreamError } from '../core/errors.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { isoInstant } from '../config/setting-parsers.ts';
import { eventLine, jsonLine } from './event-lines.ts';
import { lineWriter } from './line-writer.ts';
import { progressLine } from './progress-line.ts';
import { replayedPrefix, replaySettings } from './replayed-account.ts';
import { replayedTopic } from './replayed-topic.ts';
import { stopSignals } from './stop.ts';

export interface ReplayFlags {
  /** Name of an account of a fleet. */
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
  const config = replaySettings({ env: process.env, cwd: process.cwd() }, flags.account);
  const logger = await createLogger({ level: config.logLevel });
  const { kafka, registry } = openKafkaClients(config, {
    log: kafkaLogCreator(logger),
    kafkaRetries: STARTUP_RETRIES,
  });

  const prefix = await replayedPrefix(config, flags.account, kafka);
  const topic = await replayedTopic(of, prefix, registry);
  const { key, limit = Infinity, byTime, pretty, follow } = flags;
  const lines = lineWriter(process.stdout);
  const colors = pc.createColors(process.stdout.isTTY && pc.isColorSupported);
  const progress = fstatSync(STDOUT).isFile() ? progressLine(process.stderr) : undefined;
  const enough$ = new Subject<void>();
  let count = 0;

  const replayed$ = replay(
    {
      kafka,
      registry,
      topic,
      from,
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
      const full = lines.write(pretty ? eventLine(message, of, colors) : jsonLine(message));
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

function usageError(message: string): CellarstreamError {
  return new CellarstreamError('SETTINGS', message);
}
