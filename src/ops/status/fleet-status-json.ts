import type { AccountFigures, FleetState } from '../../observe/fleet-view.ts';

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
