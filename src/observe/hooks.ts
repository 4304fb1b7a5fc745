import type { Change } from '../streams/diff/change.ts';
import type { KeyedStatusChange } from '../streams/diff/status-changes.ts';
import type { Certificate, ReadingLevel } from '../schemas/events/certificate.ts';
import type { LostEvents } from './lost-events.ts';
import type { TopicFinding } from '../schemas/events/topic-findings.ts';
import type { DatesFound } from '../streams/paging/list-dates.ts';
import type { ScanTrouble } from '../streams/paging/scan-trouble.ts';
import type { RejectReason } from '../streams/records/records.ts';
import type { Proof } from '../streams/paging/sweep-progress.ts';

/** The lane that a page comes from: polls, initial snapshot (`first-read`), sweeps, refetches of single records (`reread`) or resyncs. */
export type Lane = 'poll' | 'first-read' | 'sweep' | 'reread' | 'resync';

/** Report on one processed page of a list: the changes that were published from the page, and whether the page completed a scan. */
export interface Published {
  readonly resource: string;
  readonly lane: Lane;
  readonly changes: readonly Change[];
  readonly statusChanges: readonly KeyedStatusChange[];
  /** Number of the page's records that are unchanged. */
  readonly unchanged: number;
  /** Number of published records of the resource that are not deleted. The records of this page are included. */
  readonly known: number;
  /** When the page was processed, in epoch ms by the local clock. */
  readonly at: number;
  /** Whether the page completes a scan of the list: a poll, an initial snapshot, or a sweep whose deletions have been processed. */
  readonly completes: boolean;
}

/** Progress of an initial snapshot. It is reported after each page of the snapshot, and when a snapshot that has read a page is resumed. */
export interface Progress {
  readonly resource: string;
  /** Number of records that the snapshot has read so far. */
  readonly read: number;
  /**
   * Number of records in the list, according to the API. If the API reports no number, `total` equals `read`. Right after a resumption,
   * `total` is estimated from the published records.
   */
  readonly total: number;
  readonly done: boolean;
}

/** State of a resync: a request to publish a list or a record again. */
export interface Resynced {
  readonly resource: string;
  /** Id of the resync request. */
  readonly id: string;
  /** State of the resync. `begun` is reported again if the resync restarts after an error. The other values are final. */
  readonly status: 'begun' | 'done' | 'refused' | 'failed';
  /** Number of events published for the resync request. 0 in the state `begun`. */
  readonly events: number;
  /** Explanation of the outcome for the operator, such as why the request was refused; null if there is none. */
  readonly message: string | null;
}

/** Report on a request to the API that has ended, successfully or not. */
export interface Requested {
  /** Target of the request: `login`, or the name of the requested list. */
  readonly what: string;
  /**
   * HTTP status code. Undefined if no complete response arrived, for example because the connection was refused or closed too early, or
   * because the request timed out.
   */
  readonly status: number | undefined;
  /** Time from sending the request to the last byte of its response, in ms. If no complete response arrived: until the request ended. */
  readonly elapsedMs: number;
  /** How long the request had waited for the quota, in ms. */
  readonly waitedMs: number;
  /** Whether the response says that the requested single record does not exist, which is no failure. Default false. */
  readonly isGone?: boolean;
}

/** Report on a Kafka transaction that has ended, successfully or not. */
export interface Committed {
  readonly resource: string;
  /**
   * How the transaction ended. `fenced`: another producer has opened the transactional id, or the transaction timed out. `failed`: any
   * other error; whether the messages were committed has to be read from Kafka.
   */
  readonly outcome: 'committed' | 'failed' | 'fenced';
  /**
   * Duration of the transaction, in ms. Includes storing its images (published records) in `STATE_DIR`, and waiting, for at most two
   * seconds, until consumers can read its messages. After an error: the time until the error.
   */
  readonly elapsedMs: number;
  /** Number of messages in the transaction, including tombstones and acknowledgements of signals but not the cursor. */
  readonly messages: number;
}

/** Current use of a quota of the API. */
export interface QuotaUse {
  /**
   * Name of the quota: `login` for logins, `all` for the quota that all lists share (`QUOTA_SCOPE=key`), otherwise the name of the list
   * that it limits.
   */
  readonly name: string;
  /** Number of requests that count against the quota at this moment: those of the last minute and those in flight. */
  readonly used: number;
  /** Maximum number of requests that the quota allows in any minute. */
  readonly limit: number;
}

/** Functions that return current values of a running service. */
export interface Gauges {
  /** Returns the current use of each quota of the API: of the quotas for lists and, if the API has a login, of the quota for logins. */
  readonly quotas: () => readonly QuotaUse[];
}

/** Report on a failed call to the API, Kafka or another dependency. The call is retried. */
export interface Retrying {
  /** Name of the failed dependency: `login`, `kafka`, `registry`, `state folder`, or a list of the API, such as `orders`. */
  readonly what: string;
  /** The resource that waits for the retry. Undefined if the whole service waits. */
  readonly resource?: string;
  readonly error: unknown;
  /** Number of consecutive failed attempts, this one included: 1 at the first failure after a success. */
  readonly count: number;
  readonly delayMs: number;
}

/**
 * Why no certificate was published after a full scan. `too-soon`: the previous certificate of the list is younger than
 * `CERTIFICATE_INTERVAL_MS`. `partitions`: the topic's number of partitions has changed since its events were written.
 */
export type Uncertified = 'too-soon' | 'partitions';

/** Callbacks through which a running service reports what it does. Every hook is optional. A hook must not throw and must not block. */
export interface Hooks {
  /** Called once, before the first request to the API. Only `onDiscarded`, and `onRetry` for Kafka, may be called earlier. */
  readonly onStart?: (gauges: Gauges) => void;
  /**
   * Called when a login has returned a token, which is valid for `lifeMs`. `aheadMs`: lower bound of how far the server's clock is ahead of
   * the local one; undefined if the response does not show it.
   */
  readonly onLogin?: (login: { lifeMs: number; aheadMs: number | undefined }) => void;
  /**
   * Called once for each quota that other processes turn out to use too. `requests`: number of their requests that is known at this time.
   */
  readonly onQuotaShared?: (shared: { quota: string; requests: number }) => void;
  /** The machine's clock was set back by `backMs`. Times in events that follow may therefore be earlier than those in previous events. */
  readonly onClockSetBack?: (setBack: { backMs: number }) => void;
  /** A request to the API has ended. */
  readonly onRequest?: (request: Requested) => void;
  /**
   * The service is logged in and owns the resource: reading begins. Called at the start, and again each time the service has to open the
   * resource anew after an error.
   */
  readonly onReady?: (ready: { resource: string }) => void;
  /**
   * The service has become the owner of the account although a process with another state folder may still be using it. If that
   * process is running, it is fenced and stops. Called for each resource of the account.
   */
  readonly onTakenOver?: (takenOver: { resource: string }) => void;
  /**
   * A list was read as empty before its key fields were known. Key fields can only be chosen from records, so the list is read again after
   * a pause.
   */
  readonly onEmpty?: (empty: { resource: string }) => void;
  /**
   * The key fields of a resource were chosen from its first records, or the fields of the setting `KEY_FIELDS_*` were found in these
   * records. Not called if the key fields are known from published events or the API's description.
   */
  readonly onKeyFields?: (chosen: { resource: string; keyFields: readonly string[] }) => void;
  /**
   * A field from the settings or the description occurs in none of the first records of a list, so its name may be misspelled. `field`:
   * path within a record, such as `address.phone`, or a JSON Pointer.
   */
  readonly onUnseen?: (unseen: { resource: string; field: string }) => void;
  /**
   * Called with the id of the schema of a resource's new events: when the service opens a resource that has a schema, and each time the
   * schema has grown.
   */
  readonly onSchema?: (schema: { resource: string; schemaId: number }) => void;
  /**
   * More published records are missing from a full scan than `DELETE_LIMIT_PERCENT` allows: `gone` of `known`. Their deletions are not
   * published.
   */
  readonly onHeld?: (held: {
    resource: string;
    gone: number;
    known: number;
    limitPercent: number;
  }) => void;
  /** A sweep of a list has ended, and the deletions that it detected have been processed. */
  readonly onSwept?: (swept: {
    resource: string;
    /** Number of the sweep; the sweeps of a list are numbered from 1. */
    number: number;
    /** Number of distinct keys that the sweep read. */
    records: number;
    proof: Proof;
    /** Evidence that the sweep read the whole list. Null if there is none, for example because the sweep was interrupted. */
    level: ReadingLevel | null;
    /** Whether deletions in this list can be proven at all, either by sweeps or by requests for single records. */
    canProve: boolean;
    /** Whether the API has requests for single records. They can prove a deletion even if the sweep's `proof` is only `doubtful`. */
    canBeAsked: boolean;
  }) => void;
  /**
   * A certificate was published: a message with the results of a full scan. `level`: evidence that the scan read the whole list; null if
   * there is none, for example because the list was empty.
   */
  readonly onCertified?: (certified: {
    resource: string;
    certificate: Certificate;
    level: ReadingLevel | null;
  }) => void;
  /** A full scan has ended, and no certificate of it was published. `why` is the reason. */
  readonly onUncertified?: (uncertified: { resource: string; why: Uncertified }) => void;
  /**
   * A request for a single record has failed for good: the API refused it, or its response is not JSON. The record's deletion is not
   * published.
   */
  readonly onRefused?: (refused: { resource: string; error: unknown }) => void;
  /** A resource is stopped because of an error that an operator has to resolve. It is retried after `delayMs`. Other resources continue. */
  readonly onFailed?: (failed: { resource: string; error: unknown; delayMs: number }) => void;
  /** A Kafka transaction begins, other than one by which the service claims a resource. `onCommitted` is called when it has ended. */
  readonly onCommit?: (begun: { resource: string }) => void;
  /** A Kafka transaction has ended, successfully or not. */
  readonly onCommitted?: (commit: Committed) => void;
  /** A page of records was processed: its changes are committed, or it has no changes. */
  readonly onPublished?: (published: Published) => void;
  /** An initial snapshot has progressed. */
  readonly onProgress?: (progress: Progress) => void;
  /**
   * A problem (`trouble`) was detected during a scan: records may be missing, or the scan takes longer. `offset`: list offset of the page.
   * For the trouble `cut`: list offset at which the list seems to end.
   */
  readonly onTrouble?: (trouble: {
    resource: string;
    trouble: ScanTrouble;
    offset: number;
  }) => void;
  /**
   * Fields were detected whose value differs in every response of a list. `fields`: JSON Pointers to the newly detected ones. A change of
   * such a field is still published, unless `VOLATILE_FIELDS` names the field.
   */
  readonly onVolatile?: (found: { resource: string; fields: readonly string[] }) => void;
  /**
   * A response seems outdated: it comes from a cache, or shows records in an earlier state than the published one.
   *
   * - `held`: number of records in an earlier state that begin to wait for a second read. They are not published before that read.
   * - `ageMs`: upper bound of the age of the response's content, in ms; 0 if the response does not come from a cache.
   */
  readonly onStale?: (stale: { resource: string; held: number; ageMs: number }) => void;
  /**
   * A property of a list's date parameters was detected. It is one of these:
   *
   * - the difference between the time zone of the parameters and that of the records' modification times;
   * - the date format that the API accepts;
   * - the longest window that the API accepts;
   * - that the API refuses or ignores the parameters.
   */
  readonly onDates?: (dates: DatesFound & { resource: string }) => void;
  /** A page that was read ahead is dropped, because it does not continue the scan. `offset` is the page's list offset. */
  readonly onDropped?: (dropped: { resource: string; offset: number }) => void;
  /**
   * A record was rejected and is written to dead letters. `offset` is the record's list offset if it is known, otherwise the list offset of
   * its page, or null if it came on no page.
   */
  readonly onRejected?: (rejected: {
    resource: string;
    reason: RejectReason;
    offset: number | null;
  }) => void;
  /** A call failed and is retried after a pause. */
  readonly onRetry?: (retrying: Retrying) => void;
  /** A resync was started, or has ended and its acknowledgement is in the topic of signals. `status` says which. */
  readonly onResync?: (resync: Resynced) => void;
  /**
   * A message in the topic of signals is ignored, because it is not a valid signal or too many requests are pending. `offset` is the
   * message's offset.
   */
  readonly onSignalIgnored?: (ignored: {
    partition: number;
    offset: string;
    reason: string;
  }) => void;
  /**
   * Signals could not be read or acknowledged. `delayMs`: pause before the service tries again. 0 after a failed acknowledgement of a
   * request for permits: the acknowledgement is not sent again.
   */
  readonly onSignalsFailed?: (failed: { error: unknown; delayMs: number }) => void;
  /** The store of published records (images) in `STATE_DIR` may be damaged and was deleted. The images are restored from Kafka. */
  readonly onDiscarded?: (discarded: { reason: string }) => void;
  /**
   * The service uses a topic of the resource although a setting of the topic is unsuitable. Called for each such setting, each time the
   * service opens the resource.
   */
  readonly onTopicDoubt?: (doubt: { resource: string; finding: TopicFinding }) => void;
  /**
   * Published events are missing from a resource's topic. The list is read again, and the records of the missing events are published again
   * with `op` `r`.
   */
  readonly onLost?: (lost: { resource: string; lost: LostEvents }) => void;
  /**
   * Published records (images) were restored from Kafka because they were missing in `STATE_DIR`. `images`: number of messages that were
   * read, deletions included.
   */
  readonly onRestored?: (restored: { resource: string; images: number }) => void;
}
