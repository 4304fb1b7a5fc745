import type { AccountFigures, FleetState } from '../../observe/fleet-view.ts';

/**
 * JSON body of `/status`, and of the events that the status page receives each second. Times (`...At`, `at`, `since`) are ms since the
 * epoch on this machine's clock; fields `...Ms` are durations. It contains no personal data: of records only order numbers, ids of subjects
 * and status values. All arrays and texts have a maximum length.
 */
export interface Status {
  readonly version: string;
  readonly account: string;
  readonly prefix: string;
  readonly at: number;
  /** When the process started; counts, life cycles and recent changes start empty with it. */
  readonly since: number;
  readonly pollIntervalMs: number;
  readonly ready: boolean;
  /** Why the service is not ready, one line each. */
  readonly reasons: readonly string[];
  /** Codes of `reasons`, each once. */
  readonly causes: readonly string[];
  /** Problems that do not make the service count as not ready, the newest first. */
  readonly warnings: readonly Warning[];
  /** Null before the first login. */
  readonly token: TokenStatus | null;
  /** Empty until the service has started. */
  readonly quotas: readonly QuotaStatus[];
  readonly resources: readonly ResourceStatus[];
  /** One for each status field. */
  readonly lifeCycles: readonly LifeCycle[];
  /** The newest first. */
  readonly statusChanges: readonly RecentStatusChange[];
  /** The newest first. */
  readonly deadLetters: readonly RecentDeadLetter[];
}

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
  /** Null if the warning concerns the whole service. */
  readonly resource: string | null;
  readonly text: string;
  /** When the problem was last reported. */
  readonly at: number;
}

interface TokenStatus {
  readonly since: number;
  readonly lifeMs: number;
  /** 0 once the token has expired. */
  readonly leftMs: number;
}

export interface QuotaStatus {
  /** `login`, the name of a list, or `all` where all lists share one quota. */
  readonly name: string;
  /** Requests that count now: those of the last minute, and those in flight. */
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
  /** The retry that the list waits for. */
  readonly retry: RetryStatus | null;
  /** Null if this process has read no part of the initial snapshot. */
  readonly firstRead: InitialSnapshotStatus | null;
  /** Requests of the last minute. */
  readonly requests: Readonly<Record<RequestClass, number>>;
  /** Lag over the last five minutes, from a record's `updated_at` to the commit of its event. */
  readonly freshness: FreshnessStatus;
  /** Averages over the last ten seconds. */
  readonly perSecond: { readonly records: number; readonly events: number };
  readonly series: SeriesStatus;
  /** Number of published records that are not deleted; null before the first page. */
  readonly known: number | null;
  /** When the last scan that finds all changes was completed: a poll or, in a list without polls, a full scan. */
  readonly lookedAt: number | null;
  /** Null before the first sweep of this process has ended. */
  readonly swept: SweptStatus | null;
  /** Null before the first certificate of this process. */
  readonly certified: CertifiedStatus | null;
  /** Why the newest full scan was not certified; null if it was. */
  readonly uncertified: 'too-soon' | 'partitions' | null;
  readonly schemaId: number | null;
  /** Dead letters by reason. */
  readonly deadLetters: Readonly<Record<string, number>>;
  /** Duration of the newest committed transaction. */
  readonly transactionMs: number | null;
  /** When the open transaction began; null while none is open. */
  readonly commitBeganAt: number | null;
}

export interface RetryStatus {
  /** `kafka`, `registry`, `state folder`, a list of the API, or the list that has failed. */
  readonly what: string;
  readonly error: string;
  /** 1 for the first try after a failure. */
  readonly count: number;
  readonly nextAt: number;
}

export interface InitialSnapshotStatus {
  readonly read: number;
  readonly total: number;
  readonly done: boolean;
  /** Rate over the last minute; null while it is unknown or once the snapshot is done. */
  readonly perSecond: number | null;
  readonly leftMs: number | null;
}

/** Newest lag, and quantiles to within 10 %; null where there was no change. */
interface FreshnessStatus {
  readonly lastMs: number | null;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** One value per time slot of `everyMs`, the oldest first. */
export interface SeriesStatus {
  readonly everyMs: number;
  readonly endsAt: number;
  readonly recordsPerSecond: readonly number[];
  readonly eventsPerSecond: readonly number[];
  /** Lag of the slowest change in each time slot; null where there was none. */
  readonly lagMs: readonly (number | null)[];
}

export interface CertifiedStatus {
  /** End of the full scan, by the API server's clock. */
  readonly at: number;
  readonly number: number;
  /** `total_records`; null if it changed during the scan. */
  readonly total: number | null;
  /** Number of distinct keys that the scan read. */
  readonly read: number;
  /** Number of live keys in the topic. */
  readonly records: number;
  readonly proof: string;
  /** Why the proof is not `exact`; null if it is. */
  readonly whyNotExact: string | null;
}

export interface SweptStatus {
  readonly at: number;
  /** Number of distinct keys that the sweep read. */
  readonly records: number;
  readonly proof: string;
}

/** States of one status field that occurred, and the changes between them. */
export interface LifeCycle {
  /** `order`, `order_edit`, `fulfillment` or `club_package`. */
  readonly subject: string;
  readonly field: string;
  readonly states: readonly LifeCycleState[];
  readonly changes: readonly LifeCycleChange[];
  /** Number of changes that are not in `changes`, as these are limited. */
  readonly others: number;
}

/**
 * Where a change of a life cycle starts or ends. `state`: a status. `new`: there was no status before the change. `gone`: there is none
 * after it. `other`: any of the statuses that are not told apart, because the maximum number of distinct ones is reached.
 */
export interface LifeCycleState {
  readonly kind: 'state' | 'new' | 'gone' | 'other';
  /** The status, shortened if it is long; empty unless `kind` is `state`. */
  readonly name: string;
  /** How often a change led to this state; for `new`, how often one left it. */
  readonly count: number;
}

export interface LifeCycleChange {
  /** Index in `states`. */
  readonly from: number;
  /** Index in `states`. */
  readonly to: number;
  readonly count: number;
  /**
   * Median time in ms spent in state `from` before this change, to within 10 %; null where it was never observed how `from` was entered.
   */
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
  /** List offset of the page with the rejected record. */
  readonly offset: number;
}

/**
 * JSON body of `/status` of an instance of a fleet, and of its events. Units and limits are those of {@link Status}; it contains no
 * secrets.
 */
export interface FleetStatus {
  readonly version: string;
  /** Topic prefix that all accounts share. */
  readonly prefix: string;
  readonly at: number;
  readonly since: number;
  /** The instance that sends this status. */
  readonly instance: string;
  /** Null while this instance is not in the group: data about the fleet is then what it knew last. */
  readonly generation: number | null;
  /** Members of the group. */
  readonly instances: readonly string[];
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly causes: readonly string[];
  /** All known accounts, sorted by name. */
  readonly accounts: readonly FleetAccountStatus[];
}

export interface FleetAccountStatus {
  readonly account: string;
  readonly state: FleetState;
  readonly owner: string | null;
  /** When the account entered its state. */
  readonly since: number;
  readonly problem: string | null;
  /** Whether this instance runs the account; `/status?account=` then returns its full status. */
  readonly isHere: boolean;
  /** Null if the account runs elsewhere and its owner has not reported any. */
  readonly figures: AccountFigures | null;
}

/** JSON body of the 404 response to `/status?account=` for an account that does not run on this instance. */
export interface AccountElsewhere {
  readonly error: string;
  readonly account: string;
  readonly owner: string | null;
}
