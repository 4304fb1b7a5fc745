import { CellarstreamError } from '../core/errors.ts';
import { cappedListText } from '../observe/capped-list-text.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { LineLogger } from '../observe/log.ts';
import { lostEventsText } from '../observe/lost-events.ts';
import { findingText } from '../schemas/events/topic-findings.ts';
import { countPage, provesDeletions } from '../ops/status/hook-figures.ts';
import { fewNames } from '../ops/status/shortened.ts';
import { datesText } from '../streams/paging/list-dates.ts';
import { coalesce } from './coalesce.ts';

/** Errors of the signals topic whose retry pause is shorter than this (ms) are logged at debug level only: they resolve themselves. */
const WARN_AFTER_MS = 500;
/** Interval of the log lines about an initial snapshot's progress, for each list, in ms. */
const PROGRESS_EVERY_MS = 10_000;
/** Interval of the log lines about published events, for each list, in ms. */
const TALLY_EVERY_MS = 60_000;
/** Interval of the log lines about single records, in ms. Writing a line delays a commit, and bad records may come by the thousand. */
const RECORDS_EVERY_MS = 10_000;
/** Interval at which a lasting warning is repeated, in ms. */
const REPEAT_WARNING_EVERY_MS = 10 * 60_000;
/** Number of consecutive sweeps that prove no deletions before a warning is logged. */
const UNPROVEN_SWEEPS = 3;

/** Hooks that are called too often to be logged; metrics count them. */
type MeteredHook = 'onStart' | 'onRequest' | 'onDropped' | 'onCommit' | 'onCommitted';

/**
 * Hooks that log what a service does: problems at once, the progress of an initial snapshot every ten seconds, published events once a
 * minute, and problems of single records combined. Never logs the content of a record.
 */
export function logHooks(logger: LineLogger): Required<Omit<Hooks, MeteredHook>> {
  const isProgressDue = atMostEvery(PROGRESS_EVERY_MS);
  const isTroubleDue = atMostEvery(REPEAT_WARNING_EVERY_MS);
  const tallies = new Map<string, Tally>();
  const lastGone = new Map<string, number>();
  type Told<K extends 'onRefused' | 'onRejected'> = Parameters<Required<Hooks>[K]>[0];
  const refused = coalesce<Told<'onRefused'>>(RECORDS_EVERY_MS, ({ resource, error }, count) =>
    logger.warn(
      { event: 'refused', resource, count, err: error },
      'requests for single records were refused',
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
      logger.info({ event: 'ready', resource }, 'claimed the list; reading begins'),
    onEmpty: ({ resource }) =>
      logger.debug({ event: 'empty', resource }, 'the list has no records yet'),
    onKeyFields: ({ resource, keyFields }) =>
      logger.info({ event: 'key-fields', resource, keyFields }, 'chose the key fields of the list'),
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
        'this instance fenced another one, which stops if it is still running: run one instance per account',
      ),
    onPublished: (page) => {
      const { resource, changes, statusChanges } = page;
      const now = performance.now();
      const tally = tallies.get(resource) ?? newPublishedTally(now);
      tallies.set(resource, tally);
      tally.records += countPage(page).read;
      tally.events += changes.length;
      tally.statusChanges += statusChanges.length;
      if (now - tally.since < TALLY_EVERY_MS) return;
      const { records, events, statusChanges: statuses } = tally;
      const seconds = Math.round((now - tally.since) / 1_000);
      logger.info(
        { event: 'published', resource, seconds, records, events, statusChanges: statuses },
        'published since the previous log line of this list',
      );
      tallies.set(resource, newPublishedTally(now));
    },
    onSwept: ({ resource, number, records, proof, canBeAsked }) => {
      logger.debug({ event: 'swept', resource, number, records, proof }, 'sweep completed');
      const now = performance.now();
      const isProven = provesDeletions({ proof, canBeAsked });
      const doubt = isProven ? undefined : (doubts.get(resource) ?? { since: now, sweeps: 0 });
      if (!doubt) return void doubts.delete(resource);
      doubt.sweeps += 1;
      doubts.set(resource, doubt);
      if (doubt.sweeps < UNPROVEN_SWEEPS || now - doubt.since < REPEAT_WARNING_EVERY_MS) return;
      doubts.delete(resource); // logged again after the same time
      logger.warn(
        { event: 'deletions-unknown', resource, records, proof },
        'no sweep was exact (total_records changed or did not match) or anchored (the list has no total order): deletions from this list are not published',
      );
    },
    onCertified: ({ resource, certificate }) => {
      // Without the undecided keys: they may be personal.
      const { number, proof, read, total_records: total, records, undecided } = certificate;
      logger.debug(
        { event: 'certified', resource, number, proof, read, total, records, undecided },
        'published a certificate of a full scan',
      );
    },
    onUncertified: ({ resource, why }) => {
      logger.debug({ event: 'uncertified', resource, why }, 'a full scan was not certified');
    },
    onHeld: ({ resource, gone, known, limitPercent }) => {
      const isNew = lastGone.get(resource) !== gone;
      lastGone.set(resource, gone);
      if (!isTroubleDue(`${resource} held`, isNew)) return;
      logger.error(
        { event: 'deletes-held', resource, gone, known, limitPercent },
        `${gone} of ${known} records are missing from the newest full scan: their deletions are held back by DELETE_LIMIT_PERCENT. If they were really deleted, set it to 100 until the deletions are published`,
      );
    },
    onRefused: (failure) =>
      refused(
        `${failure.resource} ${failure.error instanceof CellarstreamError ? failure.error.code : ''}`,
        failure,
      ),
    onFailed: ({ resource, error, delayMs }) =>
      logger.error(
        { event: 'failed', resource, delayMs, err: error },
        `${resource} is stopped until an operator resolves the error; it is retried each minute, other lists are not affected`,
      ),
    onTrouble: ({ resource, trouble, offset }) => {
      const quiet = trouble === 'stepped-back' || !isTroubleDue(`${resource} ${trouble}`);
      logger[quiet ? 'debug' : 'warn'](
        { event: 'scan-trouble', resource, trouble, offset },
        trouble === 'cut'
          ? cappedListText(offset)
          : 'the list changed during the scan, or its record count does not match total_records',
      );
    },
    onStale: ({ resource, held, ageMs }) =>
      logger[isTroubleDue(`${resource} stale`) ? 'warn' : 'debug'](
        { event: 'stale-answer', resource, held, ageMs },
        'the API sent a response older than an earlier one: from a lagging replica (held: records that wait for a second read) or from a cache (ageMs)',
      ),
    onVolatile: ({ resource, fields }) =>
      logger.warn(
        { event: 'volatile-fields', resource, fields: fewNames(fields) },
        'these fields differ in every response, so anchors ignore them. To publish no event when only they change, add them to VOLATILE_FIELDS',
      ),
    onDates: ({ resource, ...found }) => {
      const { form, offsetMs, longestMs, noDates, reason } = found;
      const text = datesText(found);
      const level = text === undefined ? 'info' : 'warn';
      logger[level](
        { event: 'dates', resource, form, offsetMs, longestMs, noDates, reason },
        text ?? 'modification dates work as documented again',
      );
    },
    onRejected: (reject) => rejected(`${reject.resource} ${reject.reason}`, reject),
    onRetry: ({ what, resource, error, count, delayMs }) =>
      logger.warn(
        { event: 'retry', what, resource, count, delayMs: Math.round(delayMs), err: error },
        `waiting for ${what}`,
      ),
    onResync: ({ resource, id, status, events, message }) => {
      const level = status === 'begun' || status === 'done' ? 'info' : 'warn';
      const text = status === 'begun' ? 'started a resync request' : `resync request: ${status}`;
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
        'ignored a message of the signals topic that is not a valid signal',
      ),
    onSignalsFailed: ({ error, delayMs }) =>
      // A broker that was just started takes a moment before it coordinates groups.
      logger[delayMs < WARN_AFTER_MS ? 'debug' : 'warn'](
        { event: 'signals-failed', delayMs: Math.round(delayMs), err: error },
        "the signals topic can't be read; the service retries, everything else continues",
      ),
    onDiscarded: ({ reason }) =>
      logger.warn(
        { event: 'discarded', reason },
        'the image store is damaged or may be: rebuilding it from Kafka',
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
      logger.warn(
        { event: 'topic-lost', resource, topic, partitions, offsets },
        lostEventsText(lost),
      );
    },
    onRestored: ({ resource, images }) =>
      logger.info({ event: 'restored', resource, images }, 'restored images from Kafka'),
  };
}

/**
 * Returns a function that limits the rate of log lines: it returns whether a line about `name` may be written, which is once in
 * `intervalMs`, or whenever `urgent` is set. A line that may be written counts as written.
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

function newPublishedTally(since: number): Tally {
  return { since, records: 0, events: 0, statusChanges: 0 };
}
