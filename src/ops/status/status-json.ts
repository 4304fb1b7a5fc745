import type { AccountFigures, FleetState } from '../../observe/fleet-view.ts';

/**
 * JSON body of `/status`, and of the events that the status page receives each second. Times (`...At`, `at`, `since`) are ms since the
 * epoch on this machine's clock; fields `...Ms` are durations. It contains no personal data: of records only order numbers, ids of subjects
 * and status values. All arrays and texts have a maximum length.
 */
export interface Status {
  /** Version of the package that the service runs. */
  readonly version: string;
  readonly account: string;
  /** Name prefix of the account's Kafka topics. */
  readonly prefix: string;
  /** When this status was computed. */
  readonly at: number;
  /** When the process started. Counts, life cycles and the lists of recent changes start empty with it. */
  readonly since: number;
  readonly pollIntervalMs: number;
  /** Whether the service is ready, as `/readyz` reports it. */
  readonly ready: boolean;
  /** Why the service is not ready, a line for each reason. */
  readonly reasons: readonly string[];
  /** Codes of the reasons why the service is not ready, each once. */
  readonly causes: readonly string[];
  /** Problems that do not make the service count as not ready, the newest first. */
  readonly warnings: readonly Warning[];
  /** The API token in use; null before the first login. */
  readonly token: TokenStatus | null;
  /** One entry for each quota of API requests: those of the lists, and that of logins. Empty until the service has started. */
  readonly quotas: readonly QuotaStatus[];
  readonly resources: readonly ResourceStatus[];
  /** Observed life cycles, one for each status field of the records. */
  readonly lifeCycles: readonly LifeCycle[];
  /** Recent changes of the records' statuses, the newest change first. */
  readonly statusChanges: readonly RecentStatusChange[];
  /** Recent dead letters (records that could not be published), the newest first. */
  readonly deadLetters: readonly RecentDeadLetter[];
}

/** A problem that an operator should know of although the service may be ready. */
export interface Warning {
  readonly kind:
    | 'deletions-held'
    | 'deletions-unknown'
    | 'images-discarded'
    | 'list-moved'
    /** Every scan of the list was short or out of order: records may be missing. */
    | 'list-unsettled'
    /** The API does not seem to show the list's last records. */
    | 'list-cut'
    /** Some fields of the list's records differ in every response. */
    | 'volatile-fields'
    /** Date parameters of the list do not work as documented: polls use other forms of them, or the list is not polled. */
    | 'dates'
    | 'tried-again'
    | 'not-asked'
    | 'dead-letters'
    | 'signals';
  /** The list that the warning is about; null if it concerns the whole service. */
  readonly resource: string | null;
  readonly text: string;
  /** When the problem of this warning was last reported. */
  readonly at: number;
}

interface TokenStatus {
  readonly since: number;
  readonly lifeMs: number;
  /** Remaining lifetime of the API token in ms; 0 once it has expired. */
  readonly leftMs: number;
}

export interface QuotaStatus {
  /** Scope of the quota: `login`, the name of a list, or `all` where all lists share one quota. */
  readonly name: string;
  /** Requests that count against the quota at this moment: those of the last minute, and those in flight. */
  readonly used: number;
  readonly limit: number;
}

/** Outcome of a request to the API: status 2xx (`ok`), 429 (`refused`), any other status (`failed`), or no response (`unanswered`). */
export type RequestClass = 'ok' | 'refused' | 'failed' | 'unanswered';

export interface ResourceStatus {
  readonly resource: string;
  /**
   * State of the list's reading. `taking-over`: being claimed, or not caught up yet; `first-read`: in its initial snapshot; `following`:
   * caught up; `waiting`: a failed request is retried, or Kafka does not respond; `failed`: stopped until an operator resolves the error.
   */
  readonly state: 'taking-over' | 'first-read' | 'following' | 'waiting' | 'failed';
  /** The retry of a failed request that the list waits for; null while nothing is retried. */
  readonly retry: RetryStatus | null;
  /** Progress of the list's initial snapshot; null if this process has read no part of it. */
  readonly firstRead: InitialSnapshotStatus | null;
  /** Number of requests for the list in the last minute, by outcome. */
  readonly requests: Readonly<Record<RequestClass, number>>;
  /** Lag of the list's changes, from a record's `updated_at` to the commit of its event, over the last five minutes. */
  readonly freshness: FreshnessStatus;
  /** Number of records read and of events committed per second, averaged over the last ten seconds. */
  readonly perSecond: { readonly records: number; readonly events: number };
  readonly series: SeriesStatus;
  /** Number of the list's records that are published and not deleted; null before the first page. */
  readonly known: number | null;
  /** When the last poll of the list (in a list without polls: full scan) was completed; null before the first. */
  readonly lookedAt: number | null;
  /** The newest sweep (recurring full scan) of the list; null before the first one of this process has ended. */
  readonly swept: SweptStatus | null;
  /** The newest certificate (report on a full scan) of the list; null before the first one of this process. */
  readonly certified: CertifiedStatus | null;
  /** Why the newest full scan of the list was not certified; null if it was, or before the first full scan. */
  readonly uncertified: 'too-soon' | 'partitions' | null;
  readonly schemaId: number | null;
  /** Number of dead letters (records that could not be published), by reason. */
  readonly deadLetters: Readonly<Record<string, number>>;
  /** Duration of the list's newest committed Kafka transaction, in ms; null before the first. */
  readonly transactionMs: number | null;
  /** When the list's open Kafka transaction began; null while none is open. */
  readonly commitBeganAt: number | null;
}

export interface RetryStatus {
  /** Subject of the retries: `kafka`, `registry`, `state folder`, a list of the API, or the list that has failed. */
  readonly what: string;
  readonly error: string;
  /** Number of this try: 1 for the first one after a failure. */
  readonly count: number;
  readonly nextAt: number;
}

export interface InitialSnapshotStatus {
  readonly read: number;
  readonly total: number;
  readonly done: boolean;
  /**
   * Number of records that the initial snapshot read per second over the last minute; 0 when it read none in that minute, null while the
   * rate is unknown or once the snapshot is done.
   */
  readonly perSecond: number | null;
  readonly leftMs: number | null;
}

/** Lag of a list's published changes, in ms: of the newest change, and quantiles to within 10 %; null where there was no change. */
interface FreshnessStatus {
  readonly lastMs: number | null;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** Time series of a list's figures, with one value per time slot of `everyMs`, the oldest first. */
export interface SeriesStatus {
  readonly everyMs: number;
  /** When the newest time slot of the series ended. */
  readonly endsAt: number;
  readonly recordsPerSecond: readonly number[];
  readonly eventsPerSecond: readonly number[];
  /** Lag of the slowest change of the list in each time slot; null where there was no change. */
  readonly lagMs: readonly (number | null)[];
}

export interface CertifiedStatus {
  /** When the certified full scan ended, by the API server's clock. */
  readonly at: number;
  /** Number of the certificate; it rises with each certificate of the list. */
  readonly number: number;
  /** Number of records in the list according to the API (`total_records`); null if it changed during the certified full scan. */
  readonly total: number | null;
  /** Number of distinct keys of records that the certified full scan read. */
  readonly read: number;
  /** Number of live keys in the topic of events: keys whose newest event is not a deletion. */
  readonly records: number;
  readonly proof: string;
  /** Reason, in words, why the certificate does not prove that the topic holds exactly the list's records; null if its proof is exact. */
  readonly whyNotExact: string | null;
}

export interface SweptStatus {
  readonly at: number;
  /** Number of distinct keys of records that the sweep (recurring full scan) read. */
  readonly records: number;
  readonly proof: string;
}

/** Observed life cycle of one status field: the states that occurred, and the changes between them. */
export interface LifeCycle {
  /** Part of the order that has the status field: `order`, `order_edit`, `fulfillment` or `club_package`. */
  readonly subject: string;
  readonly field: string;
  readonly states: readonly LifeCycleState[];
  readonly changes: readonly LifeCycleChange[];
  /** Number of observed changes between pairs of states that are not listed in `changes`. */
  readonly others: number;
}

/**
 * Where a change of a life cycle starts or ends. `state`: a status. `new`: there was no status before the change. `gone`: there is none
 * after it. `other`: any of the statuses that are not told apart, because the maximum number of distinct ones is reached.
 */
export interface LifeCycleState {
  readonly kind: 'state' | 'new' | 'gone' | 'other';
  /** The status that the state stands for, shortened if it is long; empty unless `kind` is `state`. */
  readonly name: string;
  /** How often a change led to this state; for `new`, how often one left it. */
  readonly count: number;
}

export interface LifeCycleChange {
  /** Index in `states` of the state before the change. */
  readonly from: number;
  /** Index in `states` of the state after the change. */
  readonly to: number;
  readonly count: number;
  /**
   * Median time in ms spent in state `from` before this change, to within 10 %; null where it was never observed how `from` was entered.
   */
  readonly medianMs: number | null;
}

export interface RecentStatusChange {
  /** When the event of the status change was committed. */
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
  /** List offset (of the API, not of Kafka) of the page that contained the rejected record. */
  readonly offset: number;
}

/**
 * JSON body of `/status` of an instance of a fleet, and of the events that its status page receives each second. Times (`at`, `since`) are
 * ms since the epoch on this machine's clock. It contains no personal data and no secrets; all texts have a maximum length.
 */
export interface FleetStatus {
  /** Version of the package that this instance runs. */
  readonly version: string;
  /** Name prefix of the Kafka topics that all accounts of the fleet share. */
  readonly prefix: string;
  /** When this status was computed. */
  readonly at: number;
  /** When the process of this instance started. */
  readonly since: number;
  /** Name of the instance that sends this status. */
  readonly instance: string;
  /**
   * Generation of the fleet's Kafka group. Null while this instance is not a member of the group: the data about the fleet is then what the
   * instance knew last.
   */
  readonly generation: number | null;
  /** Names of the instances that are members of the fleet's group. */
  readonly instances: readonly string[];
  /** Whether this instance and the accounts that it runs are ready, as `/readyz` reports it. */
  readonly ready: boolean;
  /** Why this instance is not ready, a line for each reason. */
  readonly reasons: readonly string[];
  /** Codes of the reasons why this instance is not ready, each once. */
  readonly causes: readonly string[];
  /** Status of all accounts that any instance of the fleet knows, sorted by name. */
  readonly accounts: readonly FleetAccountStatus[];
}

export interface FleetAccountStatus {
  readonly account: string;
  readonly state: FleetState;
  /** Name of the instance that runs the account; null if no instance does. */
  readonly owner: string | null;
  /** When the account entered its current state. */
  readonly since: number;
  /** Problem of the account, in words; null if there is none. */
  readonly problem: string | null;
  /** Whether this instance runs the account: `/status?account=` then returns its full status. */
  readonly isHere: boolean;
  /** Figures of the account; null if it does not run on this instance and its owner has not reported any. */
  readonly figures: AccountFigures | null;
}

/** JSON body of the 404 response to `/status?account=` for an account that does not run on this instance. */
export interface AccountElsewhere {
  readonly error: string;
  readonly account: string;
  /** Name of the instance that runs the account; null if none does, or the account is unknown. */
  readonly owner: string | null;
}
