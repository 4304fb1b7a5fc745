import type { FleetView } from '../observe/fleet-view.ts';

/** Callbacks through which an instance reports events of its fleet. All are optional; none may throw or block. */
export interface FleetHooks {
  /**
   * A generation of the fleet's Kafka group has begun. The argument has its number, the names of its members, and the number of accounts
   * assigned to this instance.
   */
  readonly onGeneration?: (generation: {
    number: number;
    instances: readonly string[];
    accounts: number;
  }) => void;
  /** This instance takes a step with an account (`AccountStep`), or stops it (`stop`) because its file changed or was removed. */
  readonly onAccount?: (step: {
    account: string;
    step: 'claim' | 'warm' | 'ask' | 'release' | 'drop' | 'stop';
  }) => void;
  /**
   * The first response for an account that another instance owned before has arrived, so the handover is complete. `elapsedMs` is the time
   * since this instance asked for the account's release or, if it did not ask, since it detected that the previous owner had released the
   * account or had crashed.
   */
  readonly onHandover?: (handover: { account: string; elapsedMs: number }) => void;
  /** Another instance claimed an account that this instance had not released. */
  readonly onFenced?: (fenced: { account: string }) => void;
  /** Serving an account failed. The account is claimed again after `delayMs`. */
  readonly onAccountFailed?: (failed: { account: string; error: unknown; delayMs: number }) => void;
  /** An account is quarantined: after several crashes right after its claim, no instance serves it for an hour. */
  readonly onQuarantined?: (quarantined: { account: string }) => void;
  /** An account's file is invalid: the account is not served until the file is corrected. */
  readonly onWrongFile?: (wrong: { account: string; error: unknown }) => void;
  /** State of the fleet as this instance sees it. Called when the state may have changed, and at least every few seconds. */
  readonly onFleet?: (fleet: FleetView) => void;
  /** A call to Kafka failed. It is retried after `delayMs`. */
  readonly onRetry?: (retry: { error: unknown; count: number; delayMs: number }) => void;
}
