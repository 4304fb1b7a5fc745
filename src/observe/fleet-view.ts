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
  /** The account's file can't be read, or its settings are invalid. */
  'wrong-file',
  /** The account is not served for a while, because instances crashed repeatedly right after claiming it. */
  'quarantined',
] as const;

export type FleetState = (typeof FLEET_STATES)[number];

export interface FleetAccount {
  readonly account: string;
  /** State of the account, derived from the account's file, its owner's messages and this instance's own state. */
  readonly state: FleetState;
  readonly owner: string | undefined;
  /** Instance that the account is assigned to, if it is not the account's owner. */
  readonly target?: string | undefined;
  /** When the account entered its current state, in epoch ms. */
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
   * Median time from a record's modification to the publication of the change, in ms, over the last five minutes; that of the slowest list.
   * Null if no change was published whose modification time is known.
   */
  readonly lagMs: number | null;
  /**
   * End of the latest complete scan that finds all changes (a poll or, in a list without polls, a full scan), in epoch ms. With several
   * lists: the time of the list whose latest scan is the oldest. Null until every list has had such a scan.
   */
  readonly lookedAt: number | null;
  /**
   * The most used of the lists' quotas: its name, the requests that count against it, and the requests that it allows in any minute. Null
   * before the account has started.
   */
  readonly quota: { readonly name: string; readonly used: number; readonly limit: number } | null;
  readonly eventsPerSecond: number;
  /** Number of records that the running initial snapshots have read, and their totals, summed over all lists. Null if none runs. */
  readonly firstRead: { readonly read: number; readonly total: number } | null;
}
