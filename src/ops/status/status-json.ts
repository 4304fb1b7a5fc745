import type { AccountFigures, FleetState } from '../../observe/fleet-view.ts';
import type { Readiness } from './causes.ts';

/**
 * JSON body of the response to `/status`, and of the events that the status page receives. Times (`...At`, `at`, `since`) are in epoch ms,
 * by this machine's clock unless noted; fields named `...Ms` are durations in ms. Of the records, the status contains only keys, ids of
 * subjects and status values.
 */
export interface Status extends Readiness {
  readonly version: string;
  readonly account: string;
  readonly prefix: string;
  readonly at: number;
  /**
   * When the process started, in epoch ms; in a fleet: when the instance began to run the account. Counts, life cycles and recent changes
   * cover the time since then.
   */
  readonly since: number;
  readonly pollIntervalMs: number;
  /** Problems that do not prevent the service from being ready, the newest first. */
  readonly warnings: readonly Warning[];
  /** State of the API's token. Null before the first login, and always if the API has no login. */
  readonly token: TokenStatus | null;
  /** Use of the quotas. Empty until the service has started. */
  readonly quotas: readonly QuotaStatus[];
  readonly resources: readonly ResourceStatus[];
  /** For each status field: the states observed since the service started, and the number and times of the changes between them. */
  readonly lifeCycles: readonly LifeCycle[];
  /** Recent status changes of records, such as a payment of an order, the newest first. */
  readonly statusChanges: readonly RecentStatusChange[];
  /** Recent dead letters, the newest first. */
  readonly deadLetters: readonly RecentDeadLetter[];
}

export interface Warning {
  readonly kind:
    | 'deletions-held'
    | 'deletions-unknown'
    | 'images-discarded'
    | 'list-moved'
    /** Every attempt to scan the list read too few records or read them in a changed order: records may be missing. */
    | 'list-unsettled'
    /** The API does not seem to show the list's last records. */
    | 'list-cut'
    /** Some fields of the list's records have a different value in every response. */
    | 'volatile-fields'
    /** Date parameters of the list do not work as documented. The list is polled with adapted parameters, or is not polled. */
    | 'dates'
    | 'tried-again'
    | 'not-asked'
    | 'dead-letters'
    | 'signals';
  /** List that the warning concerns. Null if it concerns the whole service. */
  readonly resource: string | null;
  readonly text: string;
  /** When a hook last reported the problem, in epoch ms. */
  readonly at: number;
}

interface TokenStatus {
  readonly since: number;
  readonly lifeMs: number;
  /** Remaining validity of the token, in ms. 0 once the token has expired. */
  readonly leftMs: number;
}

/**
 * Use of one quota. Its name is `login` for logins, `all` for the quota that all lists share, and the list's name for the quota of one
 * list.
 */
export type QuotaStatus = NonNullable<AccountFigures['quota']>;

/**
 * Outcome of a request to the API. `ok`: status 2xx, or the requested record is deleted. `refused`: a quota is exceeded (by default, status
 * 429). `failed`: any other status. `unanswered`: no response.
 */
export type RequestClass = 'ok' | 'refused' | 'failed' | 'unanswered';

export interface ResourceStatus {
  readonly resource: string;
  /**
   * State of the list's reading:
   *
   * - `taking-over`: the list is being claimed, or is not caught up yet.
   * - `first-read`: its initial snapshot runs.
   * - `following`: it is caught up.
   * - `waiting`: a failed call to the API or another dependency is retried, or Kafka does not respond.
   * - `failed`: the list is stopped because of an error that an operator has to resolve.
   */
  readonly state: 'taking-over' | 'first-read' | 'following' | 'waiting' | 'failed';
  /** The next retry and the failure before it. Null if the list does not wait for a retry. */
  readonly retry: RetryStatus | null;
  /** Progress of the initial snapshot. Null if this process has neither begun nor resumed one. */
  readonly firstRead: InitialSnapshotStatus | null;
  /** Number of requests in the last minute, by outcome. */
  readonly requests: Readonly<Record<RequestClass, number>>;
  /** Lag of the list's changes: the time from a record's modification to the commit of its event. */
  readonly freshness: FreshnessStatus;
  /** Number of records read and number of events published per second, averaged over the last ten seconds. */
  readonly perSecond: { readonly records: number; readonly events: number };
  readonly series: SeriesStatus;
  /** Number of records of the list that are published and not deleted. Null before the first page. */
  readonly known: number | null;
  /** When the list was last checked for all changes, in epoch ms: by a poll or, in a list without polls, a full scan. Null before that. */
  readonly lookedAt: number | null;
  /** Evidence that the newest full scan read the whole list. Null if there is none, or before the first full scan of this process. */
  readonly level: LevelStatus | null;
  /** The last complete sweep (recurring full scan). Null before the first sweep of this process has ended. */
  readonly swept: SweptStatus | null;
  /** The newest certificate that this process has issued for the list after a full scan. Null before the first one. */
  readonly certified: CertifiedStatus | null;
  /** Why the newest full scan has no certificate: the last certificate is too recent, or the partition count changed. Otherwise null. */
  readonly uncertified: 'too-soon' | 'partitions' | null;
  readonly schemaId: number | null;
  /** Number of the list's dead letters since {@link Status.since}, by reason. */
  readonly deadLetters: Readonly<Record<string, number>>;
  /** Duration of the newest successful Kafka transaction, including the update of the image store, in ms. Null before the first one. */
  readonly transactionMs: number | null;
  /** When the open Kafka transaction began, in epoch ms. Null while no transaction is open. */
  readonly commitBeganAt: number | null;
}

export interface RetryStatus {
  /**
   * Name of what failed: `kafka`, `registry`, `state folder`, or the name of the list if a request to the API or the list as a whole
   * failed.
   */
  readonly what: string;
  readonly error: string;
  /** Number of consecutive failed attempts so far: 1 at the first failure after a success. */
  readonly count: number;
  readonly nextAt: number;
}

export interface InitialSnapshotStatus {
  readonly read: number;
  readonly total: number;
  readonly done: boolean;
  /** Number of records read per second, averaged over the last minute. Null while it is unknown, and after the snapshot. */
  readonly perSecond: number | null;
  readonly leftMs: number | null;
}

/**
 * Lag of a list's changes, in ms: the time from the modification of a record to the publication of the change. Changes without a known
 * modification time do not count. `lastMs` is the lag of the newest change, null before the first one. `p50Ms` and `p95Ms` are quantiles
 * over the last five minutes, null if there was no change in that time.
 */
interface FreshnessStatus {
  readonly lastMs: number | null;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** Time series of a list: one value for each time slot of `everyMs` ms, the oldest first. */
export interface SeriesStatus {
  readonly everyMs: number;
  readonly endsAt: number;
  readonly recordsPerSecond: readonly number[];
  readonly eventsPerSecond: readonly number[];
  /** Lag of the slowest change in each time slot, in ms. Null for slots without a change whose modification time is known. */
  readonly lagMs: readonly (number | null)[];
}

export interface CertifiedStatus {
  /** When the certified full scan ended, in epoch ms by the API server's clock, or by this machine's if the API sends no `Date` header. */
  readonly at: number;
  readonly number: number;
  /**
   * Total of the list according to the API (`total_records`). Null if it changed during the certified full scan, or if the API reports
   * none.
   */
  readonly total: number | null;
  /** Number of distinct keys that the certified full scan read. */
  readonly read: number;
  /** Number of live keys in the list's topic, according to the certificate. */
  readonly records: number;
  readonly proof: string;
  /** Reasons why the certificate's proof is weaker than `exact`, such as `3 undecided`. Null if the proof is `exact`. */
  readonly whyNotExact: string | null;
}

/** Level of a full scan: how strong the evidence is that the scan read the whole list. `inWords` explains it. */
export interface LevelStatus {
  readonly name: string;
  /** Name of the level followed by its meaning, such as `agreed (two full scans have the same keys)`. */
  readonly inWords: string;
}

export interface SweptStatus {
  readonly at: number;
  /** Number of distinct keys that the last complete sweep (recurring full scan) read. */
  readonly records: number;
  readonly proof: string;
}

/** The observed states of one status field, and the changes between them. */
export interface LifeCycle {
  /** Name of the list. */
  readonly resource: string;
  /** Kind of object that has the status field, as the description of the API names it. */
  readonly subject: string;
  readonly field: string;
  readonly states: readonly LifeCycleState[];
  readonly changes: readonly LifeCycleChange[];
  /** Number of status changes that `changes` does not count, because the number of its elements is limited. */
  readonly others: number;
}

/**
 * Start or end point of the changes in a life cycle. Its `kind` is one of these:
 *
 * - `state`: a status.
 * - `new`: there was no status before the change.
 * - `gone`: there is no status after the change.
 * - `other`: all statuses beyond the maximum number of distinct ones.
 */
export interface LifeCycleState {
  readonly kind: 'state' | 'new' | 'gone' | 'other';
  /** The status if `kind` is `state`, shortened if it is long. Otherwise empty. */
  readonly name: string;
  /** Number of changes to this state. If `kind` is `new`: number of changes from it. */
  readonly count: number;
}

export interface LifeCycleChange {
  /** Index in `states` of the state before the change. */
  readonly from: number;
  /** Index in `states` of the state after the change. */
  readonly to: number;
  readonly count: number;
  /** Median time spent in state `from` before this change, in ms, to within 10 %. Null if no such time was measured. */
  readonly medianMs: number | null;
}

export interface RecentStatusChange {
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
  /** List offset of the rejected record if it is known, otherwise that of its page. Null if it came on no page. */
  readonly offset: number | null;
}

/**
 * JSON body of the response to `/status` of an instance of a fleet, and of this instance's status events. Units are those of
 * {@link Status}. It contains no secrets.
 */
export interface FleetStatus extends Readiness {
  readonly version: string;
  /** Prefix of the topics that all accounts of the fleet share. */
  readonly prefix: string;
  readonly at: number;
  readonly since: number;
  /** Name of the instance that sends this status. */
  readonly instance: string;
  /**
   * Generation of the fleet's membership. Null while this instance is not a member; the status then shows the fleet as the instance last
   * knew it.
   */
  readonly generation: number | null;
  /** Names of the fleet's members. */
  readonly instances: readonly string[];
  /**
   * Accounts of the fleet, sorted by name: those that run on this instance, have a file in `ACCOUNTS_DIR`, are assigned, or have an owner.
   */
  readonly accounts: readonly FleetAccountStatus[];
}

export interface FleetAccountStatus {
  readonly account: string;
  readonly state: FleetState;
  readonly owner: string | null;
  /** When the account entered its current state, in epoch ms. */
  readonly since: number;
  readonly problem: string | null;
  /** Whether this instance runs the account. If so, `/status?account=` returns the account's full status. */
  readonly isHere: boolean;
  /** Newest known figures of the account. Null if no instance runs it, or if the instance that runs it has not reported any. */
  readonly figures: AccountFigures | null;
}

/** JSON body of the 404 response to `/status?account=` for an account that does not run on this instance. */
export interface AccountElsewhere {
  readonly error: string;
  readonly account: string;
  readonly owner: string | null;
}
