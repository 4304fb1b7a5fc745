/** State of the fleet as one instance sees it. */
export interface FleetView {
  readonly instance: string;
  /** Undefined while this instance is not a member of the fleet's group. */
  readonly generation: number | undefined;
  /** Members of the group. */
  readonly instances: readonly string[];
  /** Sorted by name. */
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
  /** Derived from the account's file, its owner's messages and this instance's own state. */
  readonly state: FleetState;
  readonly owner: string | undefined;
  /** Instance that the account is assigned to, if that is not its owner. */
  readonly target?: string | undefined;
  /** When the account entered its state, in epoch ms. */
  readonly since: number;
  readonly problem: string | undefined;
  /** Figures last reported by the owner. */
  readonly figures?: AccountFigures | undefined;
}

/** Figures of a running account, compact enough to be reported to all other instances. */
export interface AccountFigures {
  /** Epoch ms. */
  readonly at: number;
  readonly ready: boolean;
  /** Why the account is not ready, one line each; limited in number and length. */
  readonly reasons: readonly string[];
  /** Codes of `reasons`, each once. */
  readonly causes: readonly string[];
  /** Median lag of the slowest list over five minutes, in ms; null if nothing has changed. */
  readonly lagMs: number | null;
  /** When the least recently read list was last read, in epoch ms; null while one has not been read. */
  readonly lookedAt: number | null;
  /** The quota with the least capacity left; null before the account has started. */
  readonly quota: { readonly name: string; readonly used: number; readonly limit: number } | null;
  readonly eventsPerSecond: number;
  /** Records of the running initial snapshots; null if none runs. */
  readonly firstRead: { readonly read: number; readonly total: number } | null;
}
