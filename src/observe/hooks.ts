import type { Change } from '../streams/diff/change.ts';
import type { KeyedStatusChange } from '../resources/orders/order-status.ts';
import type { Certificate } from '../schemas/events/certificate.ts';
import type { LostEvents } from './lost-events.ts';
import type { TopicFinding } from '../schemas/events/topic-findings.ts';
import type { DatesFound } from '../streams/paging/list-dates.ts';
import type { ScanTrouble } from '../streams/paging/pages.ts';
import type { RejectReason } from '../streams/records/records.ts';
import type { Proof } from '../streams/paging/sweep-progress.ts';

/** Which reading of a resource a page belongs to. */
export type Lane = 'poll' | 'first-read' | 'sweep' | 'reread' | 'resync';

/** What a commit published. */
export interface Published {
  readonly resource: string;
  readonly lane: Lane;
  readonly changes: readonly Change[];
  readonly statusChanges: readonly KeyedStatusChange[];
  /** Records of the page that are as they were. */
  readonly unchanged: number;
  /** Records of the resource that are published and not deleted, with these changes. */
  readonly known: number;
  /** When it was dealt with, ms since the epoch; on the clock of this machine. */
  readonly at: number;
  /**
   * Whether with it a reading has come to its end: a poll to that of its window, an initial snapshot to that
   * of the list; a sweep to its own, with what is gone dealt with.
   */
  readonly completes: boolean;
}

/** How far the initial snapshot is: with each of its pages, and when one is gone on with. */
export interface Progress {
  readonly resource: string;
  /**
   * Records behind, and in all, as the API counts them; before its first page, as many as are known. Where the API does not say how
   * many there are, `total` is as many as are behind.
   */
  readonly read: number;
  readonly total: number;
  readonly done: boolean;
}

/** A request to publish a resource again. */
export interface Resynced {
  readonly resource: string;
  /** Of the request. */
  readonly id: string;
  /** `begun` again after a fault: it is read from its beginning. The others are the last word. */
  readonly status: 'begun' | 'done' | 'refused' | 'failed';
  /** Published for it; 0 when it has just begun. */
  readonly events: number;
  /** What there is to say of it; else null. */
  readonly message: string | null;
}

/** A request to the API: answered, whatever the answer was, or not. */
export interface Requested {
  /** `login`, or the list that was asked. */
  readonly what: string;
  /** Of the answer; undefined when there was none: refused, reset, timed out, cut off. */
  readonly status: number | undefined;
  /** Until its last byte, or until it was given up, ms. */
  readonly elapsedMs: number;
  /** How long it had waited for its place in the quota, ms. */
  readonly waitedMs: number;
}

/** The end of a transaction. */
export interface Committed {
  readonly resource: string;
  /**
   * `failed`: the outcome is unknown, it is read back. `fenced`: Kafka let another producer have the
   * place, or the transaction ran out of time.
   */
  readonly outcome: 'committed' | 'failed' | 'fenced';
  /** From its first message to its end, with the images stored, ms. */
  readonly elapsedMs: number;
  /** Messages in it, tombstones and acknowledgements included; the cursor is one more. */
  readonly messages: number;
}

/** How much of a quota is in use. */
export interface QuotaUse {
  /** `login`, the list, or `all` where all lists share one (`QUOTA_SCOPE=key`). */
  readonly name: string;
  /** Requests that count at this moment: those of the last minute, and those under way. */
  readonly used: number;
  /** Most of them in any minute. */
  readonly limit: number;
}

/** What can be asked of a service while it runs. */
export interface Gauges {
  /** Of the login and of each list, or of all lists together. */
  readonly quotas: () => readonly QuotaUse[];
}

/** A service that did not answer, and is tried again. */
export interface Retrying {
  /** Which: `login`, `kafka`, `registry`, `state folder`, or a list of the API, such as `orders`. */
  readonly what: string;
  /** The resource that waits; undefined where the whole service does. */
  readonly resource?: string;
  readonly error: unknown;
  /** 1 for the first try after a failure. */
  readonly count: number;
  readonly delayMs: number;
}

/**
 * Why a complete reading is not certified. `too-soon`: the certificate before it is not yet `CERTIFICATE_INTERVAL_MS` old.
 * `partitions`: the topic has another number of them than its events were written with.
 */
export type Uncertified = 'too-soon' | 'partitions';

/**
 * What a service tells about itself while it runs. All optional; none may throw, nor take long. Logs
 * and the demo's lines are made of them; the streams themselves know no logger.
 */
export interface Hooks {
  /** Once, before anything else. */
  readonly onStart?: (gauges: Gauges) => void;
  /**
   * A login gave a token: the first one, or the next. It is good for `lifeMs`; the server's clock is
   * `aheadMs` before ours, less what the answer took; undefined when it did not tell.
   */
  readonly onLogin?: (login: { lifeMs: number; aheadMs: number | undefined }) => void;
  /** The machine's clock was set back by so many ms: times in events may be lower than those before. */
  readonly onClockSetBack?: (setBack: { backMs: number }) => void;
  /** Every request to the API, as it ends. */
  readonly onRequest?: (request: Requested) => void;
  /**
   * Logged in, connected, the resource taken over: reading begins. Again after each new take-over.
   */
  readonly onReady?: (ready: { resource: string }) => void;
  /**
   * The place of another process is taken, of one with another state folder that has not said that it ends: if it still
   * runs it ends now.
   */
  readonly onTakenOver?: (takenOver: { resource: string }) => void;
  /** A list that nothing is known of has nothing to find a key by: it is looked at again. */
  readonly onEmpty?: (empty: { resource: string }) => void;
  /** The fields that a resource's keys are made of were chosen. */
  readonly onKeyFields?: (chosen: { resource: string; keyFields: readonly string[] }) => void;
  /**
   * None of the first records has a field that the settings name, here without the list: `tender_info.last_four` is
   * to be hidden, and `/image_url` volatile. A name that is spelled wrong does nothing.
   */
  readonly onUnseen?: (unseen: { resource: string; field: string }) => void;
  /** The schema that events are written in from now on: at the start, and when it has grown. */
  readonly onSchema?: (schema: { resource: string; schemaId: number }) => void;
  /** A complete reading found more gone than may go at once: no deletion is published. */
  readonly onHeld?: (held: {
    resource: string;
    gone: number;
    known: number;
    limitPercent: number;
  }) => void;
  /** A complete reading has ended, and what it found to be gone is dealt with. */
  readonly onSwept?: (swept: {
    resource: string;
    /** The how manieth it was. */
    number: number;
    /** Distinct keys that it read. */
    records: number;
    proof: Proof;
    /** Whether what is missing is asked for: then less proof is needed. */
    canBeAsked: boolean;
  }) => void;
  /** What the service can vouch for after a complete reading was published. */
  readonly onCertified?: (certified: { resource: string; certificate: Certificate }) => void;
  /** A complete reading has ended, and is not certified. */
  readonly onUncertified?: (uncertified: { resource: string; why: Uncertified }) => void;
  /** The API refuses to be asked for a single record: whether it is gone can't be told. */
  readonly onRefused?: (refused: { resource: string; error: unknown }) => void;
  /** A resource is stopped until somebody acts on the error; the service tries it again, and the other lists go on. */
  readonly onFailed?: (failed: { resource: string; error: unknown; delayMs: number }) => void;
  /**
   * A transaction is begun; `onPublished` or `onFailed` of the resource ends it, or `onRetry` of Kafka,
   * the registry or the state folder.
   */
  readonly onCommit?: (begun: { resource: string }) => void;
  /** A transaction has ended, in whatever way. */
  readonly onCommitted?: (commit: Committed) => void;
  /** A page is dealt with: committed, or found to be nothing new. */
  readonly onPublished?: (published: Published) => void;
  /** How far an initial snapshot has come. */
  readonly onProgress?: (progress: Progress) => void;
  /** A reading met something that may cost records or time. */
  readonly onTrouble?: (trouble: {
    resource: string;
    trouble: ScanTrouble;
    offset: number;
  }) => void;
  /**
   * Fields, as JSON Pointers, that differ in every answer of a list: pages are tied together without them, and
   * each change of one is an event, unless `VOLATILE_FIELDS` names it.
   */
  readonly onVolatile?: (found: { resource: string; fields: readonly string[] }) => void;
  /**
   * An answer showed records in an earlier state than the published one, and `held` of them are not published until they are read again
   * so; or it came from a cache, and is `ageMs` older than its request.
   */
  readonly onStale?: (stale: { resource: string; held: number; ageMs: number }) => void;
  /** Something was found out about a list's date parameters: the offset of their time zone, the form that is accepted, or that they are of no use. */
  readonly onDates?: (dates: DatesFound & { resource: string }) => void;
  /** A page that was asked for before its turn has come, and is of no use: the list has moved. */
  readonly onDropped?: (dropped: { resource: string; offset: number }) => void;
  /** A record goes to dead letters. */
  readonly onRejected?: (rejected: {
    resource: string;
    reason: RejectReason;
    offset: number;
  }) => void;
  /** A try failed, and is made again after a pause. */
  readonly onRetry?: (retrying: Retrying) => void;
  /** A request to publish again is taken up, or was acknowledged. */
  readonly onResync?: (resync: Resynced) => void;
  /** A message in the topic of signals is none, or one too many: nobody acts on it. */
  readonly onSignalIgnored?: (ignored: {
    partition: number;
    offset: string;
    reason: string;
  }) => void;
  /** Signals can't be read or answered just now, all else goes on; it is tried again. */
  readonly onSignalsFailed?: (failed: { error: unknown; delayMs: number }) => void;
  /** The images of all resources were damaged and thrown away: they are read back from Kafka. */
  readonly onDiscarded?: (discarded: { reason: string }) => void;
  /** Something of a topic that a resource is written to is unwise. Each time it is taken over. */
  readonly onTopicDoubt?: (doubt: { resource: string; finding: TopicFinding }) => void;
  /**
   * Events that were published are no longer in a resource's topic: its list is read anew, and what the topic
   * lacks is published again, as `r`.
   */
  readonly onLost?: (lost: { resource: string; lost: LostEvents }) => void;
  /** Images were read back from Kafka, because the store had not seen them. */
  readonly onRestored?: (restored: { resource: string; images: number }) => void;
}
