/** The fleet as one instance knows it. */
export interface FleetView {
  /** This instance's name. */
  readonly instance: string;
  /** Of the group; undefined while this instance is in none. */
  readonly generation: number | undefined;
  /** The names of the members. */
  readonly instances: readonly string[];
  /** All that anybody knows, in the order of their names. */
  readonly accounts: readonly FleetAccount[];
}

export type FleetState =
  | 'running'
  | 'starting'
  | 'moving'
  /** Nobody runs it; the problem says why. */
  | 'without-owner'
  | 'failed'
  /** Its file can't be read, or its settings are wrong. */
  | 'wrong-file'
  /** It took its instance down again and again. */
  | 'quarantined';

export interface FleetAccount {
  readonly account: string;
  /** What its file, its owner or this instance says of it. */
  readonly state: FleetState;
  /** The name of the instance that runs it; undefined where nobody does. */
  readonly owner: string | undefined;
  /** The name of the instance that is to run it; left out where it does, or where nobody is to. */
  readonly target?: string | undefined;
  /** Since when it is in that state, ms since the epoch. */
  readonly since: number;
  /** What is wrong with it, in words; undefined when nothing is. */
  readonly problem: string | undefined;
  /** What its owner told of it last; left out where it does not run here and nobody has told. */
  readonly figures?: AccountFigures | undefined;
}

/** How an account is that runs, in a few figures: small enough to be told to the other instances. */
export interface AccountFigures {
  /** When it was so, ms since the epoch. */
  readonly at: number;
  /** As `/readyz` says of one account. */
  readonly ready: boolean;
  /** Why it is not ready, a line each; a few of them, shortened. */
  readonly reasons: readonly string[];
  /** The codes of the reasons, each once. */
  readonly causes: readonly string[];
  /** The median lag of the slowest list over five minutes; null where nothing has changed. */
  readonly lagMs: number | null;
  /** When the list that was looked at longest ago was so; null while there is one that was not yet. */
  readonly lookedAt: number | null;
  /** Of its lists, the quota that has the least left; null before the account has begun. */
  readonly quota: { readonly name: string; readonly used: number; readonly limit: number } | null;
  readonly eventsPerSecond: number;
  /** Of initial snapshots that run; null where none does. */
  readonly firstRead: { readonly read: number; readonly total: number } | null;
}
