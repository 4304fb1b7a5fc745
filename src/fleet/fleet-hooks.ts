import type { FleetView } from '../observe/fleet-view.ts';
import type { AccountStep } from './next-step.ts';

/** Callbacks through which an instance reports events of its fleet. All are optional; none may throw or block. */
export interface FleetHooks {
  /**
   * Called when a generation of the fleet's Kafka group has begun, with the generation's number, its members' names (`instances`), and the
   * number of accounts assigned to this instance.
   */
  readonly onGeneration?: (generation: {
    number: number;
    instances: readonly string[];
    accounts: number;
  }) => void;
  /**
   * Called when this instance begins a step with an account: `claim` (becomes its owner), `warm` (restores its images), `ask` (asks its
   * owner to release it), `release` (stops serving it, for the instance that asked), `drop` (gives up restoring, claiming or serving it),
   * or `stop` (stops it because its file changed or was removed).
   */
  readonly onAccount?: (step: {
    account: string;
    step: Exclude<AccountStep, 'stay'> | 'stop';
  }) => void;
  /**
   * Called when the handover of an account from another instance is complete, at the API's first successful response to this instance.
   * `elapsedMs`: time since this instance asked for the account's release or, if it did not ask, since it detected that the previous owner
   * had released the account or had crashed.
   */
  readonly onHandover?: (handover: { account: string; elapsedMs: number }) => void;
  /** Called when another instance has claimed an account that this instance had not released. */
  readonly onFenced?: (fenced: { account: string }) => void;
  /** Called when serving an account has ended with an error; after `onFenced` too. The account may be claimed again after `delayMs`. */
  readonly onAccountFailed?: (failed: { account: string; error: unknown; delayMs: number }) => void;
  /**
   * Called when this instance has quarantined an account: instances crashed right after claiming it, so none serves it for an hour, or
   * until its file is changed.
   */
  readonly onQuarantined?: (quarantined: { account: string }) => void;
  /**
   * Called when an account's file is invalid, or its API key is also in the file of an account that another instance has. This instance
   * does not serve the account until the files are corrected.
   */
  readonly onWrongFile?: (wrong: { account: string; error: unknown }) => void;
  /** Called with the state of the fleet as this instance sees it: when the state may have changed, and at least every few seconds. */
  readonly onFleet?: (fleet: FleetView) => void;
  /**
   * Called when a call to Kafka has failed. `delayMs`: pause before the call is retried, in ms; 0 where the pause is not reported. `count`:
   * number of consecutive failures where they are counted, otherwise 1.
   */
  readonly onRetry?: (retry: { error: unknown; count: number; delayMs: number }) => void;
}
