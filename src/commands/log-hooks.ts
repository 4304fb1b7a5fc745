import { CellarstreamError } from '../core/errors.ts';
import { cutText } from '../observe/cut-text.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { LineLogger } from '../observe/log.ts';
import { lossText } from '../observe/lost-events.ts';
import { findingText } from '../schemas/events/topic-findings.ts';
import { countPage, tellsWhatIsGone } from '../ops/status/hook-figures.ts';
import { fewNames } from '../ops/status/shortened.ts';
import { datesText } from '../streams/paging/list-dates.ts';
import { coalesce } from './coalesce.ts';

/** Signals that are away for less are back by themselves: by the pause before the next try. */
const WORTH_A_WARNING_MS = 500;
const PROGRESS_EVERY_MS = 10_000;
const TALLY_EVERY_MS = 60_000;
/** A line is written before its commit goes on, and bad records come by the thousand. */
const RECORDS_EVERY_MS = 10_000;
/** A list that does not add up, or that has lost too much, stays so: it is said now and then. */
const TROUBLE_EVERY_MS = 10 * 60_000;
const SWEEPS_IN_DOUBT = 3;

/** What there is too much of for lines: it is measured. */
type Measured = 'onStart' | 'onRequest' | 'onDropped' | 'onCommit' | 'onCommitted';

/**
 * What a service tells, as log lines: something wrong at once, the initial snapshot every ten seconds,
 * what was published once a minute, single records gathered. Never a record.
 */
export function logHooks(logger: LineLogger): Required<Omit<Hooks, Measured>> {
  const isProgressDue = atMostEvery(PROGRESS_EVERY_MS);
  const isTroubleDue = atMostEvery(TROUBLE_EVERY_MS);
  const tallies = new Map<string, Tally>();
  const lastGone = new Map<string, number>();
  type Told<K extends 'onRefused' | 'onRejected'> = Parameters<Required<Hooks>[K]>[0];
  const refused = coalesce<Told<'onRefused'>>(RECORDS_EVERY_MS, ({ resource, error }, count) =>
    logger.warn(
      { event: 'refused', resource, count, err: error },
      'refetches of single records failed',
    ),
  );
  const rejected = coalesce<Told<'onRejected'>>(RECORDS_EVERY_MS, (newest, count) => {
    const { resource, reason, offset } = newest;
    logger.warn(
      { event: 'dead-letter', resource, reason, offset, count },
      'records went to dead letters',
    );
  });
  const doubts = new Map<string, { readonly since: number; sweeps: number }>();

  return {
    onLogin: () => logger.debug({ event: 'login' }, 'logged in'),
    onClockSetBack: ({ backMs }) =>
      logger.warn(
        { event: 'clock-set-back', backMs },
        "this machine's clock was set back: times in new events can be lower than in older ones; the order of events is that of `sequence`",
      ),
    onReady: ({ resource }) =>
      logger.info({ event: 'ready', resource }, 'the list is taken over, and reading begins'),
    onEmpty: ({ resource }) =>
      logger.debug({ event: 'empty', resource }, 'the list has no records yet'),
    onKeyFields: ({ resource, keyFields }) =>
      logger.info(
        { event: 'key-fields', resource, keyFields },
        'these fields make the keys of the list',
      ),
    onUnseen: ({ resource, field }) =>
      field.startsWith('/')
        ? logger.warn(
            { event: 'volatile-unseen', resource, field },
            'none of the first records has this field of VOLATILE_FIELDS: check its spelling, a wrong name does nothing',
          )
        : logger.warn(
            { event: 'pii-unseen', resource, field },
            'none of the first records has this field of the PII_ settings: check its spelling, a wrong name hides nothing',
          ),
    onSchema: ({ resource, schemaId }) =>
      logger.info({ event: 'schema', resource, schemaId }, 'events use this schema'),
    onProgress: ({ resource, read, total, done }) => {
      if (!isProgressDue(resource, done)) return;
      const text = done ? 'initial snapshot done' : 'initial snapshot';
      logger.info({ event: 'first-read', resource, read, total, done }, text);
    },
    onTakenOver: ({ resource }) =>
      logger.warn(
        { event: 'taken-over', resource },
        'this instance took over from another one, which ends if it still runs: run one instance per account',
      ),
    onPublished: (page) => {
      const { resource, changes, statusChanges } = page;
      const now = performance.now();
      const tally = tallies.get(resource) ?? newTally(now);
      tallies.set(resource, tally);
      tally.records += countPage(page).read;
      tally.events += changes.length;
      tally.statusChanges += statusChanges.length;
      if (now - tally.since < TALLY_EVERY_MS) return;
      const { records, events, statusChanges: statuses } = tally;
      const seconds = Math.round((now - tally.since) / 1_000);
      logger.info(
        { event: 'published', resource, seconds, records, events, statusChanges: statuses },
        'published since the previous line',
      );
      tallies.set(resource, newTally(now));
    },
    onSwept: ({ resource, number, records, proof, canBeAsked }) => {
      logger.debug({ event: 'swept', resource, number, records, proof }, 'a sweep has ended');
      const now = performance.now();
      const isProven = tellsWhatIsGone({ proof, canBeAsked });
      const doubt = isProven ? undefined : (doubts.get(resource) ?? { since: now, sweeps: 0 });
      if (!doubt) return void doubts.delete(resource);
      doubt.sweeps += 1;
      doubts.set(resource, doubt);
      if (doubt.sweeps < SWEEPS_IN_DOUBT || now - doubt.since < TROUBLE_EVERY_MS) return;
      doubts.delete(resource); // it is said again after as long
      logger.warn(
        { event: 'deletions-unknown', resource, records, proof },
        'no sweep has read as many keys as total_records says, nor can the order of the list prove that it has read all: deletions from this list are not published',
      );
    },
    onCertified: ({ resource, certificate }) => {
      // Without its keys: they may be personal.
      const { number, proof, read, total_records: total, records, undecided } = certificate;
      logger.debug(
        { event: 'certified', resource, number, proof, read, total, records, undecided },
        'a complete reading was certified',
      );
    },
    onUncertified: ({ resource, why }) => {
      logger.debug({ event: 'uncertified', resource, why }, 'a complete reading was not certified');
    },
    onHeld: ({ resource, gone, known, limitPercent }) => {
      const isNew = lastGone.get(resource) !== gone;
      lastGone.set(resource, gone);
      if (!isTroubleDue(`${resource} held`, isNew)) return;
      logger.error(
        { event: 'deletes-held', resource, gone, known, limitPercent },
        `${gone} of ${known} records are gone at once, so no deletion is published. If they are really gone, set DELETE_LIMIT_PERCENT to 100 until the deletions are published`,
      );
    },
    onRefused: (told) =>
      refused(
        `${told.resource} ${told.error instanceof CellarstreamError ? told.error.code : ''}`,
        told,
      ),
    onFailed: ({ resource, error, delayMs }) =>
      logger.error(
        { event: 'failed', resource, delayMs, err: error },
        `${resource} is stopped until somebody acts on the error; the service tries it again, and the other lists go on`,
      ),
    onTrouble: ({ resource, trouble, offset }) => {
      const quiet = trouble === 'stepped-back' || !isTroubleDue(`${resource} ${trouble}`);
      logger[quiet ? 'debug' : 'warn'](
        { event: 'scan-trouble', resource, trouble, offset },
        trouble === 'cut' ? cutText(offset) : 'the list moved under the reader, or does not add up',
      );
    },
    onStale: ({ resource, held, ageMs }) =>
      logger[isTroubleDue(`${resource} stale`) ? 'warn' : 'debug'](
        { event: 'stale-answer', resource, held, ageMs },
        'the API sent an answer that is older than one before it: from a replica that lags (held: records that are not published until they are read again), or from a cache (ageMs)',
      ),
    onVolatile: ({ resource, fields }) =>
      logger.warn(
        { event: 'volatile-fields', resource, fields: fewNames(fields) },
        'these fields differ in every answer, so anchors leave them out. If their change alone shall be no event, name them in VOLATILE_FIELDS',
      ),
    onDates: ({ resource, ...found }) => {
      const { form, offsetMs, longestMs, noDates, reason } = found;
      const text = datesText(found);
      const level = text === undefined ? 'info' : 'warn';
      logger[level](
        { event: 'dates', resource, form, offsetMs, longestMs, noDates, reason },
        text ?? 'modification dates do what they say again',
      );
    },
    onRejected: (told) => rejected(`${told.resource} ${told.reason}`, told),
    onRetry: ({ what, resource, error, count, delayMs }) =>
      logger.warn(
        { event: 'retry', what, resource, count, delayMs: Math.round(delayMs), err: error },
        `waiting for ${what}`,
      ),
    onResync: ({ resource, id, status, events, message }) => {
      const level = status === 'begun' || status === 'done' ? 'info' : 'warn';
      const text =
        status === 'begun' ? 'a resync request is taken up' : `a resync request is ${status}`;
      logger[level](
        {
          event: 'resync',
          resource,
          id,
          status,
          events,
          ...(message !== null && { reason: message }),
        },
        text,
      );
    },
    onSignalIgnored: ({ partition, offset, reason }) =>
      logger.warn(
        { event: 'signal-ignored', partition, offset, reason },
        'a message in the topic of signals is no signal, and is ignored',
      ),
    onSignalsFailed: ({ error, delayMs }) =>
      // A broker that was just started takes a moment to coordinate groups.
      logger[delayMs < WORTH_A_WARNING_MS ? 'debug' : 'warn'](
        { event: 'signals-failed', delayMs: Math.round(delayMs), err: error },
        "signals can't be read; the service tries again, and all else goes on",
      ),
    onDiscarded: ({ reason }) =>
      logger.warn(
        { event: 'discarded', reason },
        'the stored images are damaged or in doubt, and are rebuilt from Kafka',
      ),
    onTopicDoubt: ({ resource, finding }) => {
      const { topic, setting, found, wanted } = finding;
      logger.warn(
        { event: 'topic-setting', resource, topic, setting, found, wanted },
        findingText(finding),
      );
    },
    onLost: ({ resource, lost }) => {
      const { topic, offsets, gaps, keys = [] } = lost;
      const partitions = [...gaps, ...keys].map(({ partition }) => partition);
      logger.warn({ event: 'topic-lost', resource, topic, partitions, offsets }, lossText(lost));
    },
    onRestored: ({ resource, images }) =>
      logger.info({ event: 'restored', resource, images }, 'images were rebuilt from Kafka'),
  };
}

/**
 * Whether something is due under a name, which it is at most once in so many ms; and whenever it is
 * `urgent`. What is due counts as done.
 */
function atMostEvery(intervalMs: number): (name: string, urgent?: boolean) => boolean {
  const doneAt = new Map<string, number>();
  return (name, urgent = false) => {
    const now = performance.now();
    if (!urgent && now - (doneAt.get(name) ?? -Infinity) < intervalMs) return false;
    doneAt.set(name, now);
    return true;
  };
}

interface Tally {
  readonly since: number;
  records: number;
  events: number;
  statusChanges: number;
}

function newTally(since: number): Tally {
  return { since, records: 0, events: 0, statusChanges: 0 };
}
