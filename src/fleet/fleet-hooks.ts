import type { FleetView } from '../observe/fleet-view.ts';

/** What an instance tells of its fleet. All optional; none may throw, nor take long. */
export interface FleetHooks {
  /** A generation of the group has begun: who takes part in it, and how many accounts are to be run here. */
  readonly onGeneration?: (generation: {
    number: number;
    instances: readonly string[];
    accounts: number;
  }) => void;
  /** What this instance does with an account from now on. */
  readonly onAccount?: (told: {
    account: string;
    step: 'claim' | 'warm' | 'ask' | 'release' | 'drop' | 'stop';
  }) => void;
  /** An account that another instance had is read here, so long after it was asked for, released, or found to be lost. */
  readonly onHandover?: (handover: { account: string; elapsedMs: number }) => void;
  /** Another instance took an account that this one had not released. */
  readonly onFenced?: (fenced: { account: string }) => void;
  /** An account can't go on, and is tried again. */
  readonly onAccountFailed?: (failed: { account: string; error: unknown; delayMs: number }) => void;
  /** An account has taken down so many instances that nobody runs it for an hour. */
  readonly onQuarantined?: (quarantined: { account: string }) => void;
  /** The file of an account is wrong: it is not served until that is put right. */
  readonly onWrongFile?: (wrong: { account: string; error: unknown }) => void;
  /** The fleet has changed, as far as it is known here. */
  readonly onFleet?: (fleet: FleetView) => void;
  /** Kafka did not answer, and is tried again. */
  readonly onRetry?: (retry: { error: unknown; count: number; delayMs: number }) => void;
}
