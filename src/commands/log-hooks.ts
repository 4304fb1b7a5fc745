import { CellarstreamError } from '../core/errors.ts';
import { totalNames } from '../description/description.ts';
import type { ListDescription } from '../description/description.ts';
import { LEVEL_WORDS } from '../description/levels.ts';
import type { FleetHooks } from '../fleet/fleet-hooks.ts';
import { cappedListText } from '../observe/capped-list-text.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { LineLogger } from '../observe/log.ts';
import { lostEventsText } from '../observe/lost-events.ts';
import {
  heldDeletionsText,
  unprovenDeletionsText,
  UnprovenSweeps,
} from '../observe/unpublished-deletions.ts';
import { findingText } from '../schemas/events/topic-findings.ts';
import { deletionsOf } from '../ops/status/hook-figures.ts';
import { fewNames } from '../ops/status/shortened.ts';
import { datesText } from '../streams/paging/list-dates.ts';
import type { ScanTrouble } from '../streams/paging/scan-trouble.ts';
import { coalesce, LineLimit, PublishedCounts } from './log-limits.ts';

/**
 * Retry delay, in ms, at or above which a failure to read the signals topic is logged at level warn. Failures with a shorter delay usually
 * pass, and are logged at debug.
 */
const WARN_AFTER_MS = 500;
/** Interval of the log lines about an initial snapshot's progress, for each list, in ms. */
const PROGRESS_EVERY_MS = 10_000;
/** Interval of the log lines about published events, for each list, in ms. */
const TALLY_EVERY_MS = 60_000;
/** Interval of the log lines about single records, in ms. If it is too short and many records are bad, writing the lines delays commits. */
const RECORDS_EVERY_MS = 10_000;
/** Interval at which a warning is repeated while its cause lasts, in ms. */
const REPEAT_WARNING_EVERY_MS = 10 * 60_000;

/** Log text about a list whose full scans can't prove that a missing record was deleted. */
const NO_PROOF_OF_ABSENCE =
  'records that are missing from this list are not published as deleted (only those that the API marks as deleted), because they may only have moved: the list has no total, and its pages do not overlap or are not sorted by the key. To publish such deletions, add total, one, deleted or agreed: true to the description of the list, or request the list sorted by its key';
/** Log texts for kinds of scan trouble that the general text does not describe. */
const SCAN_TROUBLES: Readonly<Partial<Record<ScanTrouble, string>>> = {
  shifted:
    'a page repeats records of the page before it: the cursor of the list acts like an offset, so records may be missed when others are deleted',
  expired: 'the API refused the cursor of the next page: the scan starts over',
};

type HookEvent<K extends keyof Hooks> = Parameters<Required<Hooks>[K]>[0];

/** Hooks that are not logged: they are called too often, or (`onStart`) report nothing to log. */
type MeteredHook = 'onStart' | 'onRequest' | 'onDropped' | 'onCommit' | 'onCommitted';

/**
 * Returns hooks that log what a service does. Frequent lines are limited to one in an interval. The content of records is never logged.
 *
 * @param lists The API's lists, from which log texts take the names of totals. Default: every total is called "the total".
 */
export function logHooks(
  logger: LineLogger,
  lists: readonly ListDescription[] = [],
): Required<Omit<Hooks, MeteredHook>> {
  const totalOf = totalNames(lists);
  const progressLines = new LineLimit(PROGRESS_EVERY_MS);
  const warnings = new LineLimit(REPEAT_WARNING_EVERY_MS);
  const publishedCounts = new PublishedCounts(TALLY_EVERY_MS);
  const unproven = new UnprovenSweeps();
  /** Limits the line {@link NO_PROOF_OF_ABSENCE} to one for each list. */
  const noProofLines = new LineLimit(Infinity);
  const refused = coalesce<HookEvent<'onRefused'>>(RECORDS_EVERY_MS, ({ resource, error }, count) =>
    logger.warn(
      { event: 'refused', resource, count, err: error },
      'requests for single records of this list failed (err): a deletion that such a request has to confirm is not published until the request succeeds',
    ),
  );
  const rejected = coalesce<HookEvent<'onRejected'>>(
    RECORDS_EVERY_MS,
    ({ resource, reason, offset }, count) =>
      logger.warn(
        { event: 'dead-letter', resource, reason, offset, count },
        "records could not be published and were written to the topic of dead letters instead (offset: position of the newest one, or of its page, in the API's list)",
      ),
  );

  return {
    onLogin: () => logger.debug({ event: 'login' }, 'logged in'),
    onQuotaShared: ({ quota, requests }) =>
      logger.warn(
        { event: 'quota-shared', quota, requests },
        'another program also sends requests that count against this quota of the API key: this service counts them and sends fewer. To avoid that, give the other program an API key of its own',
      ),
    onClockSetBack: ({ backMs }) =>
      logger.warn(
        { event: 'clock-set-back', backMs },
        "this machine's clock was set back: times in new events can be lower than in older ones; to put events in order, use `source.sequence` and not their times",
      ),
    onReady: ({ resource }) =>
      logger.info(
        { event: 'ready', resource },
        'this instance publishes the list from now on: it begins to read the list from the API',
      ),
    onEmpty: ({ resource }) =>
      logger.debug({ event: 'empty', resource }, 'the list has no records yet'),
    onKeyFields: ({ resource, keyFields }) =>
      logger.info({ event: 'key-fields', resource, keyFields }, 'chose the key fields of the list'),
    onUnseen: ({ resource, field }) => {
      const [fields, setting, effect] = field.startsWith('/')
        ? [{ event: 'volatile-unseen' }, 'VOLATILE_FIELDS', 'has no effect']
        : [{ event: 'pii-unseen' }, 'PII_DROP, PII_MASK or PII_HMAC', 'hides nothing'];
      logger.warn(
        { ...fields, resource, field },
        `none of the first records of the list has this field, which ${setting} names. Check the spelling: a wrong name ${effect}`,
      );
    },
    onSchema: ({ resource, schemaId }) =>
      logger.info(
        { event: 'schema', resource, schemaId },
        'events of this list are written with this schema of the schema registry',
      ),
    onProgress: ({ resource, read, total, done }) => {
      if (!progressLines.isDue(resource, done)) return;
      const text = done ? 'initial snapshot done' : 'initial snapshot';
      logger.info({ event: 'first-read', resource, read, total, done }, text);
    },
    onTakenOver: ({ resource }) =>
      logger.warn(
        { event: 'taken-over', resource },
        'this instance has taken over the account and publishes it from now on. If another instance is still running for this account, it stops, because Kafka refuses its next write. Outside of a fleet, run only one instance for each account',
      ),
    onPublished: (page) => {
      const counts = publishedCounts.add(page);
      if (!counts) return;
      logger.info(
        { event: 'published', resource: page.resource, ...counts },
        'numbers of records that were read, and of events and status changes that were published, in the last `seconds`',
      );
    },
    onSwept: (swept) => {
      const { resource, number, records, proof, level } = swept;
      logger.debug(
        { event: 'swept', resource, number, records, proof, level },
        level === null ? 'sweep completed' : `sweep completed: ${LEVEL_WORDS[level]}`,
      );
      const deletions = deletionsOf(swept);
      if (deletions === 'never' && noProofLines.isDue(resource)) {
        logger.info({ event: 'level', resource, level }, NO_PROOF_OF_ABSENCE);
      }
      if (deletions !== 'unknown') return unproven.reset(resource);
      if (!unproven.add(resource, performance.now())) return;
      unproven.reset(resource); // logged again after the same time
      logger.warn(
        { event: 'deletions-unknown', resource, records, proof },
        unprovenDeletionsText(totalOf(resource)),
      );
    },
    onCertified: ({ resource, certificate }) => {
      // Without the undecided keys: they may be personal.
      const { number, proof, read, total_records: total, records, undecided } = certificate;
      logger.debug(
        { event: 'certified', resource, number, proof, read, total, records, undecided },
        'published a certificate (count and digest of the list) of a full scan',
      );
    },
    onUncertified: ({ resource, why }) => {
      logger.debug(
        { event: 'uncertified', resource, why },
        'no certificate (count and digest of the list) was published after a full scan. Reason (why): too-soon, less than CERTIFICATE_INTERVAL_MS since the last certificate, which is normal; partitions, the number of partitions of the topic changed, which an operator has to resolve',
      );
    },
    onHeld: ({ resource, gone, known, limitPercent }) => {
      if (!warnings.isDue(`${resource} held`, gone)) return;
      logger.error(
        { event: 'deletes-held', resource, gone, known, limitPercent },
        heldDeletionsText(gone, known),
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
        `${resource} is stopped by an error (err) that usually needs an operator. It is retried each minute; other lists are not affected`,
      ),
    onTrouble: ({ resource, trouble, offset }) => {
      const quiet = trouble === 'stepped-back' || !warnings.isDue(`${resource} ${trouble}`);
      logger[quiet ? 'debug' : 'warn'](
        { event: 'scan-trouble', resource, trouble, offset },
        trouble === 'cut'
          ? cappedListText(offset)
          : (SCAN_TROUBLES[trouble] ??
              `the list changed during the scan, or its record count does not match ${totalOf(resource)}`),
      );
    },
    onStale: ({ resource, held, ageMs }) =>
      logger[warnings.isDue(`${resource} stale`) ? 'warn' : 'debug'](
        { event: 'stale-answer', resource, held, ageMs },
        'the API returned records in an earlier state than the published one, as from a lagging replica (held: how many wait, for up to 10 s, until they are read again), or a cached response (ageMs: its age)',
      ),
    onVolatile: ({ resource, fields }) =>
      logger.warn(
        { event: 'volatile-fields', resource, fields: fewNames(fields) },
        'these fields differ in every response, so they are ignored when the pages of a scan are compared. To publish no event when only they change, add them to VOLATILE_FIELDS',
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
        `a call failed (err) and is repeated after delayMs: ${what}`,
      ),
    onResync: ({ resource, id, status, events, message }) => {
      const level = status === 'begun' || status === 'done' ? 'info' : 'warn';
      const text = status === 'begun' ? 'started a resync request' : `resync request: ${status}`;
      const reason = message !== null && { reason: message };
      logger[level]({ event: 'resync', resource, id, status, events, ...reason }, text);
    },
    onSignalIgnored: ({ partition, offset, reason }) =>
      logger.warn(
        { event: 'signal-ignored', partition, offset, reason },
        'ignored a message of the topic of signals (reason)',
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
        'the store of published records may be damaged (see reason) and is being rebuilt from Kafka',
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
      logger.info(
        { event: 'restored', resource, images },
        'read published records from Kafka that were missing in STATE_DIR (images: number of messages read, with older versions and deletions)',
      ),
  };
}

/** Log text for each step that a fleet's instance takes with an account, such as claiming or releasing it. */
const STEPS = {
  claim: 'claiming the account',
  warm: "restoring the account's published records from Kafka while another instance serves the account",
  ask: 'asked the owner to release the account',
  release: 'releasing the account to another instance',
  drop: 'this instance stops what it was doing for the account: serving the account, claiming it, or restoring its published records',
  stop: "the account's file has changed: stopping the account",
} as const;

/** Returns hooks that log the events of a fleet. */
export function fleetLogHooks(logger: LineLogger): FleetHooks {
  return {
    onGeneration: ({ number, instances, accounts }) =>
      logger.info(
        { event: 'generation', generation: number, instances, accounts },
        'the fleet has assigned its accounts to the instances that are running (accounts: number assigned to this instance)',
      ),
    onAccount: ({ account, step }) => logger.info({ event: 'account', account, step }, STEPS[step]),
    onAccountFailed: ({ account, error, delayMs }) =>
      logger.error(
        { event: 'account-failed', account, delayMs, err: error },
        'this account stopped with an error that usually needs an operator (err says what to change; with the code FENCED, another process has claimed the account, and nothing is to be done unless it happens again). It is started again after delayMs; other accounts are not affected',
      ),
    onQuarantined: ({ account }) =>
      logger.error(
        { event: 'quarantined', account },
        'within ten minutes, three instances crashed right after they began to serve this account: no instance serves it for an hour (quarantine), or until a setting in its file in ACCOUNTS_DIR changes. Look for the cause in the logs of those instances',
      ),
    onWrongFile: ({ account, error }) =>
      logger.error(
        { event: 'wrong-file', account, err: error },
        "this instance can't serve the account: its file is invalid, or conflicts with a file of another instance (err says what to change)",
      ),
    onRetry: ({ error, count, delayMs }) =>
      logger.warn(
        { event: 'retry', what: 'fleet', count, delayMs, err: error },
        'a call to Kafka for the fleet (the membership of this instance, or the topic of the fleet) failed (err) and is repeated',
      ),
  };
}

/**
 * Returns the hooks of {@link logHooks} for an account of a fleet. Claiming a list that another instance has not released is logged at
 * level info, with a text for fleets.
 */
export function fleetAccountLogHooks(logger: LineLogger, lists: readonly ListDescription[]): Hooks {
  return {
    ...logHooks(logger, lists),
    onTakenOver: ({ resource }) =>
      logger.info(
        { event: 'taken-over', resource },
        'this instance publishes the list from now on. The instance that published it before did not release it, probably because it crashed; if it still runs, Kafka refuses its next write, and it then stops serving the account. Nothing is to be done',
      ),
  };
}
