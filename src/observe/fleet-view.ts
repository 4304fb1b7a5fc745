/** State of the fleet as one instance knows it. */
export interface FleetView {
  readonly instance: string;
  /** Generation of the fleet's membership. Undefined while this instance is not a member. */
  readonly generation: number | undefined;
  /** Names of the fleet's members. */
  readonly instances: readonly string[];
  /** Accounts that have a file in `ACCOUNTS_DIR`, are assigned, or have an owner, as far as the instance knows, sorted by name. */
  readonly accounts: readonly FleetAccount[];
}

/** States of an account of a fleet, the best state first. */
export const FLEET_STATES = [
  'running',
  'starting',
  'moving',
  /** No instance serves the account; `problem` says why. */
  'without-owner',
  'failed',
  /** The account's file can't be read, its settings are invalid, or its API key is also that of another account. */
  'wrong-file',
  /** The account is not served for a while, because instances crashed repeatedly right after claiming it. */
  'quarantined',
] as const;

export type FleetState = (typeof FLEET_STATES)[number];

export interface FleetAccount {
  readonly account: string;
  /** State of the account, derived from its file, its assignment, and what the instances have reported about it. */
  readonly state: FleetState;
  readonly owner: string | undefined;
  /**
   * Name of the instance that is to become the account's owner. Undefined if there is none, and in the states `failed`, `wrong-file` and
   * `quarantined`.
   */
  readonly target?: string | undefined;
  /**
   * Approximate time since which the account is in its state, in epoch ms. While the account runs: when its owner claimed it. Otherwise:
   * time of the newest message about the account.
   */
  readonly since: number;
  readonly problem: string | undefined;
  /** Newest figures that the owner (the instance that serves the account) has reported. Undefined if none are known. */
  readonly figures?: AccountFigures | undefined;
}

/** Summary of a running account, compact enough to be reported to all other instances. */
export interface AccountFigures {
  /** When the summary was computed, in epoch ms. */
  readonly at: number;
  readonly ready: boolean;
  /** Why the account is not ready, one line for each reason. The number and length of the lines are limited. */
  readonly reasons: readonly string[];
  /** Codes of the reasons why the account is not ready, without duplicates. */
  readonly causes: readonly string[];
  /**
   * Median time from a record's modification to the publication of the change over the last five minutes, in ms. With several lists: the
   * longest of their medians. Null if no change with a known modification time was published.
   */
  readonly lagMs: number | null;
  /**
   * When the account's lists were last checked for changes, in epoch ms: the earliest of the lists' times. Null until every list was
   * checked.
   */
  readonly lookedAt: number | null;
  /**
   * The most used of the lists' quotas: its name, the requests that count against it, and the requests that it allows in any minute. Null
   * before the account has started.
   */
  readonly quota: { readonly name: string; readonly used: number; readonly limit: number } | null;
  readonly eventsPerSecond: number;
  /** Progress of all running initial snapshots together: records read so far, and total number of records. Null if none runs. */
  readonly firstRead: { readonly read: number; readonly total: number } | null;
}
