import type { Hooks } from '../hooks.ts';
import type { Logger } from '../log.ts';

const PROGRESS_EVERY_MS = 10_000;
const TALLY_EVERY_MS = 60_000;

/**
 * What a service tells, as log lines: something wrong at once, the first read every ten seconds,
 * what was published once a minute. Never a record.
 */
export function logHooks(logger: Logger): Required<Hooks> {
  let progressAt = -Infinity;
  let tallyAt = performance.now();
  let tally = { records: 0, events: 0, statusChanges: 0 };

  return {
    onReady: () => logger.info({ event: 'ready' }, 'logged in and connected, reading'),
    onProgress: ({ resource, read, total, done }) => {
      const now = performance.now();
      if (!done && now - progressAt < PROGRESS_EVERY_MS) return;
      progressAt = now;
      const text = done ? 'first read done' : 'first read';
      logger.info({ event: 'first-read', resource, read, total, done }, text);
    },
    onPublished: ({ resource, changes, statusChanges, unchanged }) => {
      tally.records += changes.length + unchanged;
      tally.events += changes.length;
      tally.statusChanges += statusChanges.length;
      const now = performance.now();
      if (now - tallyAt < TALLY_EVERY_MS) return;
      logger.info({ event: 'published', resource, ...tally }, 'in the last minute');
      tallyAt = now;
      tally = { records: 0, events: 0, statusChanges: 0 };
    },
    onTrouble: ({ resource, trouble, offset }) => {
      const quiet = trouble === 'stepped-back';
      logger[quiet ? 'debug' : 'warn'](
        { event: 'scan-trouble', resource, trouble, offset },
        'the list moved under the scan',
      );
    },
    onRejected: ({ resource, reason, offset }) =>
      logger.warn(
        { event: 'dead-letter', resource, reason, offset },
        'a record went to dead letters',
      ),
    onRetry: ({ what, error, count, delayMs }) =>
      logger.warn(
        { event: 'retry', what, count, delayMs: Math.round(delayMs), err: error },
        `waiting for ${what}`,
      ),
    onRestored: ({ resource, images }) =>
      logger.info({ event: 'restored', resource, images }, 'images read back from Kafka'),
  };
}
