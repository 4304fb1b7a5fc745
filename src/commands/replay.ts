import { fstatSync } from 'node:fs';
import pc from 'picocolors';
import { lastValueFrom, merge, Subject } from 'rxjs';
import type { TopicPosition } from '../consumers/position.ts';
import { replay } from '../consumers/replay.ts';
import { FIRST_RETRIES, openLinks } from '../sinks/client/open-kafka.ts';
import { CellarstreamError } from '../core/errors.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { instant } from '../config/settings.ts';
import { eventLine, jsonLine } from './event-lines.ts';
import { lineWriter } from './line-writer.ts';
import { progressLine } from './progress-line.ts';
import { replayedPrefix, replaySettings } from './replayed-account.ts';
import { replayedTopic } from './replayed-topic.ts';
import { stopSignals } from './stop.ts';

export interface ReplayFlags {
  /** Of a fleet. */
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
/** Between two progress lines, at least. */
const EVENTS_A_LINE = 5_000;

/**
 * `cellarstream replay`: the events of a topic from one place to another, a JSON object a line, or a
 * line for people. Nothing is kept at the broker.
 */
export async function replayCommand(of: string, flags: ReplayFlags): Promise<void> {
  const from = placeOf('--from', flags.from, ['beginning', 'latest']);
  const to = placeOf('--to', flags.to, ['latest']);
  if (flags.follow && flags.to !== 'latest') throw wrong('--follow has no end: leave out --to');
  const config = replaySettings({ env: process.env, cwd: process.cwd() }, flags.account);
  const logger = await createLogger({ level: config.logLevel });
  const { kafka, registry } = openLinks(config, {
    log: kafkaLogCreator(logger),
    kafkaRetries: FIRST_RETRIES,
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
    await lines.flush(); // what came before an error, too
    progress?.end(`${count} ${count === 1 ? 'event' : 'events'}`);
    await registry.close();
  }
}

/** @throws CellarstreamError `SETTINGS` for what is no such place. */
function placeOf<Word extends string>(
  flag: string,
  text: string,
  words: readonly Word[],
): Word | Date | TopicPosition {
  const word = words.find((each) => each === text);
  if (word !== undefined) return word;
  if (/^\d+:\d+(,\d+:\d+)*$/.test(text)) {
    return Object.fromEntries(text.split(',').map((at) => at.split(':') as [string, string]));
  }
  const time = instant.safeParse(text);
  if (time.success) return new Date(time.data);
  throw wrong(
    `${flag} ${text}: give ${words.join(', ')}, a date (2026-01-31, in UTC), a time with its zone (2026-01-31T08:00Z), or partition:offset,partition:offset`,
  );
}

function wrong(message: string): CellarstreamError {
  return new CellarstreamError('SETTINGS', message);
}
