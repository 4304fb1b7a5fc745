import type { AccountFigures, FleetState } from '../../observe/fleet-view.ts';

/**
 * What `/status` tells, and the page each second. Times (`...At`, `at`, `since`) are ms since the epoch on this machine's clock, `...Ms`
 * are lengths. No personal data: of records only order numbers and status values. Everything in it is bounded, and so is each text.
 */
export interface Status {
  /** Of the package. */
  readonly version: string;
  readonly account: string;
  /** Of the topics. */
  readonly prefix: string;
  /** When this was told. */
  readonly at: number;
  /** When the process began. Counts, life cycles and lists below began with it. */
  readonly since: number;
  readonly pollIntervalMs: number;
  /** As `/readyz`. */
  readonly ready: boolean;
  /** Why it is not ready, a line each. */
  readonly reasons: readonly string[];
  /** The codes of the reasons, each once. */
  readonly causes: readonly string[];
  /** What else an operator should know, the newest first. */
  readonly warnings: readonly Warning[];
  /** Null before the first login. */
  readonly token: TokenStatus | null;
  /** By list and login; empty before the service has begun. */
  readonly quotas: readonly QuotaStatus[];
  readonly resources: readonly ResourceStatus[];
  /** One for each status field that is watched. */
  readonly lifeCycles: readonly LifeCycle[];
  /** The newest first. */
  readonly statusChanges: readonly RecentStatusChange[];
  /** The newest first. */
  readonly deadLetters: readonly RecentDeadLetter[];
}

/** Something that is not right, while the service may well be ready. */
export interface Warning {
  readonly kind:
    | 'deletions-held'
    | 'deletions-unknown'
    | 'images-discarded'
    | 'list-moved'
    /** However often it is read: records may be missing. */
    | 'list-unsettled'
    /** The API does not seem to show the list's last records. */
    | 'list-cut'
    /** Fields differ in every answer. */
    | 'volatile-fields'
    /** Date parameters do not do what they say: polls ask in another way, or not at all. */
    | 'dates'
    | 'tried-again'
    | 'not-asked'
    | 'dead-letters'
    | 'signals';
  /** Null where it concerns all. */
  readonly resource: string | null;
  readonly text: string;
  /** When it was told last. */
  readonly at: number;
}

interface TokenStatus {
  readonly since: number;
  readonly lifeMs: number;
  /** 0 when it has ended. */
  readonly leftMs: number;
}

export interface QuotaStatus {
  /** `login`, a list, or `all` where all lists share one. */
  readonly name: string;
  /** Requests that count at this moment: of the last minute, and under way. */
  readonly used: number;
  readonly limit: number;
}

/** How the API answered: 2xx, 429, any other status, or not at all. */
export type RequestClass = 'ok' | 'refused' | 'failed' | 'unanswered';

export interface ResourceStatus {
  readonly resource: string;
  /** `waiting`: a try failed, and is made again, or Kafka does not answer; `failed`: somebody has to do something. */
  readonly state: 'taking-over' | 'first-read' | 'following' | 'waiting' | 'failed';
  /** What is tried again; null while nothing is. */
  readonly retry: RetryStatus | null;
  /** Null when this process has read no part of it. */
  readonly firstRead: FirstReadStatus | null;
  /** Of the last minute, by how they were answered. */
  readonly requests: Readonly<Record<RequestClass, number>>;
  /** From `updated_at` to the commit, of the last five minutes. */
  readonly freshness: FreshnessStatus;
  /** Records read and events committed, of the last ten seconds. */
  readonly perSecond: { readonly records: number; readonly events: number };
  readonly series: SeriesStatus;
  /** Records that are published and not deleted; null before the first page. */
  readonly known: number | null;
  /** When somebody had found out last what is new: a complete poll, or whole reading. */
  readonly lookedAt: number | null;
  /** The newest complete reading. */
  readonly swept: SweptStatus | null;
  /** The newest certificate. */
  readonly certified: CertifiedStatus | null;
  /** Why the newest complete reading was not certified; null where it was, or there was none. */
  readonly uncertified: 'too-soon' | 'partitions' | null;
  readonly schemaId: number | null;
  /** By reason. */
  readonly deadLetters: Readonly<Record<string, number>>;
  /** Of the newest transaction that was committed. */
  readonly transactionMs: number | null;
  /** Of the transaction that is under way. */
  readonly commitBeganAt: number | null;
}

export interface RetryStatus {
  /** `kafka`, `registry`, `state folder`, a list of the API; or the resource that has failed. */
  readonly what: string;
  readonly error: string;
  /** 1 for the first try after a failure. */
  readonly count: number;
  readonly nextAt: number;
}

export interface FirstReadStatus {
  readonly read: number;
  readonly total: number;
  readonly done: boolean;
  /** Records, over the last minute; 0 when none came in it, null while that can't be told. */
  readonly perSecond: number | null;
  readonly leftMs: number | null;
}

/** Quantiles are right to a tenth. All null where nothing has changed. */
interface FreshnessStatus {
  readonly lastMs: number | null;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** A point for each stretch of time, the oldest first. */
export interface SeriesStatus {
  readonly everyMs: number;
  /** When the newest stretch ended. */
  readonly endsAt: number;
  readonly recordsPerSecond: readonly number[];
  readonly eventsPerSecond: readonly number[];
  /** The slowest change of each stretch; null where there was none. */
  readonly lagMs: readonly (number | null)[];
}

export interface CertifiedStatus {
  /** When the reading ended, by the server's clock. */
  readonly at: number;
  /** Of the certificate. */
  readonly number: number;
  /** What the API said there was; null when that moved. */
  readonly total: number | null;
  /** Distinct keys that the reading saw. */
  readonly read: number;
  /** Live keys in the topic. */
  readonly records: number;
  readonly proof: string;
  /** In words; null where it is exact. */
  readonly whyNotExact: string | null;
}

export interface SweptStatus {
  readonly at: number;
  /** Distinct keys that were read. */
  readonly records: number;
  readonly proof: string;
}

/** The states of one status field, as they were really seen, and the changes between them. */
export interface LifeCycle {
  /** `order`, `order_edit`, `fulfillment` or `club_package`. */
  readonly subject: string;
  readonly field: string;
  readonly states: readonly LifeCycleState[];
  readonly changes: readonly LifeCycleChange[];
  /** Changes beyond the most that are told apart. */
  readonly others: number;
}

/**
 * A status; or that there was none before (`new`) or is none any more (`gone`); or any status beyond
 * the most that are told apart (`other`).
 */
export interface LifeCycleState {
  readonly kind: 'state' | 'new' | 'gone' | 'other';
  /** The status, shortened; empty unless it is one. */
  readonly name: string;
  /** How often it was entered; for `new`, left. */
  readonly count: number;
}

export interface LifeCycleChange {
  /** Places in `states`. */
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** From entering `from` to this change; null where no entering was seen. Right to a tenth. */
  readonly medianMs: number | null;
}

export interface RecentStatusChange {
  /** When it was committed. */
  readonly at: number;
  readonly order: string;
  readonly subject: string;
  readonly subjectId: string | null;
  readonly field: string;
  readonly from: string | null;
  readonly to: string | null;
}

export interface RecentDeadLetter {
  readonly at: number;
  readonly resource: string;
  readonly reason: string;
  /** Of the page that it was on. */
  readonly offset: number;
}

/**
 * What `/status` of an instance of a fleet tells, and its page each second. Times (`at`, `since`) are ms since the epoch
 * on this machine's clock. No personal data and no secrets; each text is bounded, and there is one row an account.
 */
export interface FleetStatus {
  /** Of the package. */
  readonly version: string;
  /** Of the topics that all accounts share. */
  readonly prefix: string;
  /** When this was told. */
  readonly at: number;
  /** When the process began. */
  readonly since: number;
  /** The name of the instance that tells this. */
  readonly instance: string;
  /** Of the group; null while this instance is in none: then the rest is what it knew last. */
  readonly generation: number | null;
  /** The names of the members. */
  readonly instances: readonly string[];
  /** As `/readyz`: of this instance and of what it runs. */
  readonly ready: boolean;
  /** Why it is not ready, a line each. */
  readonly reasons: readonly string[];
  /** The codes of the reasons, each once. */
  readonly causes: readonly string[];
  /** All that anybody knows, by name. */
  readonly accounts: readonly FleetAccountStatus[];
}

export interface FleetAccountStatus {
  readonly account: string;
  readonly state: FleetState;
  /** The instance that runs it; null where nobody does. */
  readonly owner: string | null;
  /** Since when it is in that state. */
  readonly since: number;
  /** What is wrong with it, in words; null when nothing is. */
  readonly problem: string | null;
  /** Whether this instance runs it: then `/status?account=` tells all of it. */
  readonly isHere: boolean;
  /** Null where it does not run here, and its owner has told none. */
  readonly figures: AccountFigures | null;
}

/** What `/status?account=` answers for an account that does not run here, with 404. */
export interface NotHere {
  readonly error: string;
  readonly account: string;
  /** The instance that runs it; null where nobody does, or nobody knows of it. */
  readonly owner: string | null;
}
