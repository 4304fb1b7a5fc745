import type { Change } from '../streams/diff/change.ts';
import type { KeyedStatusChange } from '../resources/orders/order-status.ts';
import type { Certificate } from '../schemas/events/certificate.ts';
import type { LostEvents } from './lost-events.ts';
import type { TopicFinding } from '../schemas/events/topic-findings.ts';
import type { DatesFound } from '../streams/paging/list-dates.ts';
import type { ScanTrouble } from '../streams/paging/pages.ts';
import type { RejectReason } from '../streams/records/records.ts';
import type { Proof } from '../streams/paging/sweep-progress.ts';

/**
 * Stream of reads that a page belongs to: polls, initial snapshot (`first-read`), sweeps, refetches of single records (`reread`), resyncs.
 */
export type Lane = 'poll' | 'first-read' | 'sweep' | 'reread' | 'resync';

/** Report on one processed page of a list: the changes that were published from it, and whether it completed a scan. */
export interface Published {
  readonly resource: string;
  readonly lane: Lane;
  readonly changes: readonly Change[];
  readonly statusChanges: readonly KeyedStatusChange[];
  /** Number of the page's records that are unchanged. */
  readonly unchanged: number;
  /** Number of published records of the resource that are not deleted, this page included. */
  readonly known: number;
  /** When the page was processed, in epoch ms by the local clock. */
  readonly at: number;
  /**
   * Whether the page completes a scan of the list: a poll's window, an initial snapshot, or a sweep including the deletions that it found.
   */
  readonly completes: boolean;
}

/** Progress of an initial snapshot: reported with each page, and when a snapshot is resumed. */
export interface Progress {
  readonly resource: string;
  /**
   * Number of records that the snapshot has read so far (`read`), and that the list has according to the API (`total`). Before the first
   * page `total` is the number of known records; if the API reports no total, it equals `read`.
   */
  readonly read: number;
  readonly total: number;
  readonly done: boolean;
}

/** State of a resync, that is, of a request to publish a list or a record again. */
export interface Resynced {
  readonly resource: string;
  /** Id of the resync request. */
  readonly id: string;
  /** State of the resync. `begun` is repeated if the resync restarts after an error. The other values are final. */
  readonly status: 'begun' | 'done' | 'refused' | 'failed';
  /** Number of events published for the request; 0 when it has just begun. */
  readonly events: number;
  /** Explanation for the operator; null if there is none. */
  readonly message: string | null;
}

/** A finished request to the API, successful or not. */
export interface Requested {
  /** `login`, or the name of the list. */
  readonly what: string;
  /** HTTP status code; undefined without a complete response: the connection was refused, reset or cut off, or timed out. */
  readonly status: number | undefined;
  /** Time from the request to the response's last byte, or until the request was abandoned, in ms. */
  readonly elapsedMs: number;
  /** How long the request had waited for the quota, in ms. */
  readonly waitedMs: number;
}

/** The end of a Kafka transaction, successful or not. */
export interface Committed {
  readonly resource: string;
  /**
   * How the transaction ended. `failed`: the outcome is unknown and is read back from Kafka. `fenced`: another producer has opened the
   * transactional id, or the transaction timed out.
   */
  readonly outcome: 'committed' | 'failed' | 'fenced';
  /** Time from the transaction's first message to the end of its commit, including the storage of images, in ms. */
  readonly elapsedMs: number;
  /** Number of messages in the transaction, including tombstones and acknowledgements, not counting the cursor. */
  readonly messages: number;
}

/** Current use of a quota of the API. */
export interface QuotaUse {
  /** `login`, the list, or `all` if all lists share one quota (`QUOTA_SCOPE=key`). */
  readonly name: string;
  /** Number of requests that count against the quota at this moment: those of the last minute and those in flight. */
  readonly used: number;
  /** Maximum number of requests that the quota allows in any minute. */
  readonly limit: number;
}

/** Functions that return current values of a running service. */
export interface Gauges {
  /** Returns the use of the login quota and of each list's quota, or of the one that all lists share. */
  readonly quotas: () => readonly QuotaUse[];
}

/** A failed call to the API, to Kafka or to another dependency, which is retried. */
export interface Retrying {
  /** Subject of the failure: `login`, `kafka`, `registry`, `state folder`, or a list of the API, such as `orders`. */
  readonly what: string;
  /** The resource that waits for the retry; undefined if the whole service waits. */
  readonly resource?: string;
  readonly error: unknown;
  /** Number of the retry; 1 is the first one after a failure. */
  readonly count: number;
  readonly delayMs: number;
}

/**
 * Why a full scan is not certified. `too-soon`: the previous certificate is younger than `CERTIFICATE_INTERVAL_MS`. `partitions`: the
 * topic's number of partitions has changed since its events were written.
 */
export type Uncertified = 'too-soon' | 'partitions';

/**
 * Callbacks through which a running service reports what it does. All are optional; none may throw or block. The log and the demo's output
 * are built on them; the streams themselves do not log.
 */
export interface Hooks {
  /** Called once, before all other hooks. */
  readonly onStart?: (gauges: Gauges) => void;
  /**
   * A login returned a token that is valid for `lifeMs`. `aheadMs` is how far the server's clock is ahead of the local one, less the
   * response time; undefined if the response had no date.
   */
  readonly onLogin?: (login: { lifeMs: number; aheadMs: number | undefined }) => void;
  /** The machine's clock was set back by `backMs`: times in events may be lower than earlier ones. */
  readonly onClockSetBack?: (setBack: { backMs: number }) => void;
  /** A request to the API has ended. */
  readonly onRequest?: (request: Requested) => void;
  /** The service is logged in and connected and has claimed the resource: reading of its list begins. Called again after each new claim. */
  readonly onReady?: (ready: { resource: string }) => void;
  /**
   * The claim of a resource fenced a process with another state folder that had not announced its end: if that process is still running, it
   * stops.
   */
  readonly onTakenOver?: (takenOver: { resource: string }) => void;
  /** A list with no published record is empty, so its key fields can't be chosen yet; it is read again later. */
  readonly onEmpty?: (empty: { resource: string }) => void;
  /** The key fields of a resource were chosen. */
  readonly onKeyFields?: (chosen: { resource: string; keyFields: readonly string[] }) => void;
  /**
   * None of the first records of a list has a field that the settings name. `field` is without the list's name: `tender_info.last_four` for
   * a `PII_` setting, `/image_url` for `VOLATILE_FIELDS`. A misspelled name has no effect.
   */
  readonly onUnseen?: (unseen: { resource: string; field: string }) => void;
  /** Reports the schema with which a resource's new events are written: at the start, and when the schema has grown. */
  readonly onSchema?: (schema: { resource: string; schemaId: number }) => void;
  /** A full scan found more missing keys than `DELETE_LIMIT_PERCENT` allows: their deletions are held back. */
  readonly onHeld?: (held: {
    resource: string;
    gone: number;
    known: number;
    limitPercent: number;
  }) => void;
  /** A sweep, a recurring full scan of a list, has ended, and the deletions that it found are processed. */
  readonly onSwept?: (swept: {
    resource: string;
    /** Ordinal number of the sweep. */
    number: number;
    /** Number of distinct keys that the sweep read. */
    records: number;
    proof: Proof;
    /** Whether missing records can be requested individually; a deletion then takes less proof to be published. */
    canBeAsked: boolean;
  }) => void;
  /** The certificate of a full scan was published. */
  readonly onCertified?: (certified: { resource: string; certificate: Certificate }) => void;
  /** A full scan has ended without a certificate. */
  readonly onUncertified?: (uncertified: { resource: string; why: Uncertified }) => void;
  /** The API refuses requests for a single record of a list, so it can't be confirmed whether a record was deleted. */
  readonly onRefused?: (refused: { resource: string; error: unknown }) => void;
  /**
   * A resource is stopped because of an error that an operator has to resolve; it is retried after `delayMs`, and the other lists continue.
   */
  readonly onFailed?: (failed: { resource: string; error: unknown; delayMs: number }) => void;
  /**
   * A Kafka transaction has begun. It is followed by `onPublished` or `onFailed` of the resource, or by `onRetry` of Kafka, the registry or
   * the state folder.
   */
  readonly onCommit?: (begun: { resource: string }) => void;
  /** A Kafka transaction has ended, successfully or not. */
  readonly onCommitted?: (commit: Committed) => void;
  /** A page of records is settled: its changes are committed, or it has none. */
  readonly onPublished?: (published: Published) => void;
  /** An initial snapshot has progressed. */
  readonly onProgress?: (progress: Progress) => void;
  /** A scan of a list met a condition that may cost records or time. */
  readonly onTrouble?: (trouble: {
    resource: string;
    trouble: ScanTrouble;
    offset: number;
  }) => void;
  /**
   * Reports fields, as JSON Pointers, that differ in every response of a list. They are ignored when pages are matched with each other by
   * their records (anchors); each change of one is still an event unless `VOLATILE_FIELDS` names it.
   */
  readonly onVolatile?: (found: { resource: string; fields: readonly string[] }) => void;
  /**
   * A response is outdated. It showed records in an earlier state than the published one, `held` of which are published only after a second
   * read; or it came from a cache and is `ageMs` older than its request.
   */
  readonly onStale?: (stale: { resource: string; held: number; ageMs: number }) => void;
  /** A property of a list's date parameters was detected: the offset of their time zone, the accepted form, or that they do not work. */
  readonly onDates?: (dates: DatesFound & { resource: string }) => void;
  /** A page that was read ahead does not fit, because the list has changed, and is dropped. */
  readonly onDropped?: (dropped: { resource: string; offset: number }) => void;
  /** A record is written to dead letters. */
  readonly onRejected?: (rejected: {
    resource: string;
    reason: RejectReason;
    offset: number;
  }) => void;
  /** A call failed and is retried after a pause. */
  readonly onRetry?: (retrying: Retrying) => void;
  /** A resync request was started or acknowledged. */
  readonly onResync?: (resync: Resynced) => void;
  /** A message in the signals topic is not a valid signal, or too many requests are pending already: it is ignored. */
  readonly onSignalIgnored?: (ignored: {
    partition: number;
    offset: string;
    reason: string;
  }) => void;
  /** Signals can't be read or acknowledged at the moment; that is retried, and everything else continues. */
  readonly onSignalsFailed?: (failed: { error: unknown; delayMs: number }) => void;
  /** The image store was damaged and is deleted: images are restored from Kafka. */
  readonly onDiscarded?: (discarded: { reason: string }) => void;
  /** A setting of a resource's topic is unsuitable. Reported at each claim. */
  readonly onTopicDoubt?: (doubt: { resource: string; finding: TopicFinding }) => void;
  /** Published events are missing from a resource's topic: its list is read again, and the missing records are published again as `r`. */
  readonly onLost?: (lost: { resource: string; lost: LostEvents }) => void;
  /** Images were restored from Kafka because the image store did not have them. */
  readonly onRestored?: (restored: { resource: string; images: number }) => void;
}
