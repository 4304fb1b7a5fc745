/** The fleet as one instance knows it. */
export interface FleetView {
  /** The name of this instance. */
  readonly instance: string;
  /** Of the group; undefined while it is in none. */
  readonly generation: number | undefined;
  /** The names of the members. */
  readonly instances: readonly string[];
  /** All accounts that anybody knows, by name. */
  readonly accounts: readonly FleetAccount[];
}

export type FleetAccountState =
  'running' | 'starting' | 'moving' | 'without-owner' | 'failed' | 'wrong-file' | 'quarantined';

export interface FleetAccount {
  readonly account: string;
  readonly state: FleetAccountState;
  /** The name of the instance that runs it; undefined where nobody does. */
  readonly owner: string | undefined;
  /** Since when it is in that state, ms since the epoch. */
  readonly since: number;
  /** What is wrong with it, in words; undefined when nothing is. */
  readonly problem: string | undefined;
}
