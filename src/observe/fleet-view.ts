/** State of the fleet as one instance sees it. */
export interface FleetView {
  /** Human-readable name of this instance. */
  readonly instance: string;
  /** Generation of the fleet's Kafka group; undefined while this instance is not a member. */
  readonly generation: number | undefined;
  /** Names of the instances that are members of the fleet. */
  readonly instances: readonly string[];
  /** All known accounts, sorted by name. */
  readonly accounts: readonly FleetAccount[];
}

export type FleetState =
  | 'running'
  | 'starting'
  | 'moving'
  /** No instance serves the account; `problem` says why. */
  | 'without-owner'
  | 'failed'
  /** The account's file can't be read, or its settings are invalid. */
  | 'wrong-file'
  /** Instances crashed repeatedly right after claiming the account. */
  | 'quarantined';

export interface FleetAccount {
  readonly account: string;
  /** State of the account, derived from its file, its owner's messages and this instance's own state. */
  readonly state: FleetState;
  /** Name of the instance that serves the account; undefined if there is none. */
  readonly owner: string | undefined;
  /** Name of the instance that the account is assigned to, if that is not its owner; left out otherwise. */
  readonly target?: string | undefined;
  /** When the account entered its current state, in epoch ms. */
  readonly since: number;
  /** Description of the account's problem; undefined if there is none. */
  readonly problem: string | undefined;
  /** Figures last reported by the account's owner; left out if there is no report. */
  readonly figures?: AccountFigures | undefined;
}

/** Figures of a running account, compact enough to be reported to all other instances. */
export interface AccountFigures {
  /** When the figures were taken, in epoch ms. */
  readonly at: number;
  /** Whether the account is ready, as in `/readyz`. */
  readonly ready: boolean;
  /** Reasons why the account is not ready, one line each; limited in number and length. */
  readonly reasons: readonly string[];
  /** Distinct codes of the reasons why the account is not ready. */
  readonly causes: readonly string[];
  /** Median lag, over five minutes, of the account's slowest list, in ms; null if nothing has changed. */
  readonly lagMs: number | null;
  /** When the account's least recently read list was last read, in epoch ms; null while a list has not been read. */
  readonly lookedAt: number | null;
  /** The account's quota with the least capacity left; null before the account has started. */
  readonly quota: { readonly name: string; readonly used: number; readonly limit: number } | null;
  readonly eventsPerSecond: number;
  /** Records read and expected by the running initial snapshots; null if none is running. */
  readonly firstRead: { readonly read: number; readonly total: number } | null;
}
