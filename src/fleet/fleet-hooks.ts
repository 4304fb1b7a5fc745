import type { FleetView } from '../observe/fleet-view.ts';
import type { AccountStep } from './next-step.ts';

/** Callbacks through which an instance reports events of its fleet. All are optional; none may throw or block. */
export interface FleetHooks {
  /**
   * Called when a generation of the fleet's Kafka group has begun: with its number, the names of its members (`instances`), and the number
   * of accounts assigned to this instance.
   */
  readonly onGeneration?: (generation: {
    number: number;
    instances: readonly string[];
    accounts: number;
  }) => void;
  /**
   * Called when this instance begins a step with an account:
   *
   * - `claim`: becomes the account's owner;
   * - `warm`: restores the account's images;
   * - `ask`: asks the account's owner for a release;
   * - `release`: stops serving the account, for the instance that asked;
   * - `drop`: gives up restoring, claiming or serving the account;
   * - `stop`: stops the account because its file changed or was removed.
   */
  readonly onAccount?: (step: {
    account: string;
    step: Exclude<AccountStep, 'stay'> | 'stop';
  }) => void;
  /**
   * Called when an account that another instance owned before is served here: at the API's first successful response. `elapsedMs`: time
   * since this instance asked the previous owner for a release or, without a request, noticed that owner's release or crash.
   */
  readonly onHandover?: (handover: { account: string; elapsedMs: number }) => void;
  /** Called when another instance has claimed an account that this instance had not released. */
  readonly onFenced?: (fenced: { account: string }) => void;
  /** Called when serving an account has ended with an error, also after `onFenced`. The account may be claimed again after `delayMs`. */
  readonly onAccountFailed?: (failed: { account: string; error: unknown; delayMs: number }) => void;
  /**
   * Called when this instance has quarantined an account: instances crashed right after claiming it, so none serves it for an hour, or
   * until its file is changed.
   */
  readonly onQuarantined?: (quarantined: { account: string }) => void;
  /**
   * Called when this instance can't serve an account because its file is invalid, or because another account with the same API key is
   * served instead.
   */
  readonly onWrongFile?: (wrong: { account: string; error: unknown }) => void;
  /** Called with the state of the fleet as this instance sees it: when the state may have changed, and at least every few seconds. */
  readonly onFleet?: (fleet: FleetView) => void;
  /**
   * Called when a call to Kafka has failed. `delayMs`: pause before the retry, in ms; 0 if it is unknown. `count`: number of consecutive
   * failures; 1 if they are not counted.
   */
  readonly onRetry?: (retry: { error: unknown; count: number; delayMs: number }) => void;
}
