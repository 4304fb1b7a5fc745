import type { AccountTopicState } from './fleet-record.ts';

/**
 * State of an account at an instance: neither served nor restored (`nothing`), being restored (`warming`), restored as far as possible
 * (`warm`), being claimed or served (`running`), or being stopped (`stopping`).
 */
export type AccountPhase = 'nothing' | 'warming' | 'warm' | 'running' | 'stopping';

/** Everything on which an instance's next step with an account depends. */
export interface StepInput {
  readonly instance: string;
  readonly phase: AccountPhase;
  /** Newest generation of the fleet's Kafka group that this instance knows. */
  readonly generation: number;
  /** Instance ids of the newest generation's members. */
  readonly members: ReadonlySet<string>;
  /** Whether the newest generation assigns the account to this instance. */
  readonly isAssigned: boolean;
  /** Whether the account must not be served, because another account has the same API key. */
  readonly hasApiKeyConflict: boolean;
  /** State of the account in the fleet's topic; undefined if the topic has no message about the account. */
  readonly account: AccountTopicState | undefined;
  /** Time since this instance asked for the account's release in the newest generation, in ms; undefined if it has not asked. */
  readonly releaseRequestedMs: number | undefined;
}

/**
 * Next step of an instance with an account:
 * - `claim`: claims the account, which fences the account's owner, if there is one;
 * - `warm`: restores the account's images while the owner still serves it;
 * - `ask`: asks the owner for a release;
 * - `release`: stops serving the account, for the instance that asked;
 * - `drop`: stops restoring images, abandons a pending claim, or stops an account that must not be served;
 * - `stay`: changes nothing.
 */
export type AccountStep = 'claim' | 'warm' | 'ask' | 'release' | 'drop' | 'stay';

/**
 * How long to wait for a release before the account is claimed without one, in ms. If it is too small, the owner is fenced during its last
 * poll. If it is too large, a hung owner delays the handover.
 */
export const RELEASE_TIMEOUT_MS = 5_000;

export function nextStep(situation: StepInput): AccountStep {
  const { phase, isAssigned, hasApiKeyConflict } = situation;
  if (phase === 'stopping') return 'stay';
  if (phase === 'running' && hasApiKeyConflict) return 'drop'; // no instance will ask for its release
  if (phase === 'running') return isAssigned ? 'stay' : stepWhenUnassigned(situation);
  if (!isAssigned) return phase === 'nothing' ? 'stay' : 'drop';
  return stepWhenAssigned(situation);
}

/**
 * Decides the next step with an account that runs at this instance and is not assigned to it:
 *
 * - `release` if a release was requested in the newest generation;
 * - otherwise `stay` (continue to serve the account) if this instance's claim is committed and is the newest one;
 * - otherwise `drop`.
 */
function stepWhenUnassigned({ instance, account, generation }: StepInput): AccountStep {
  // A request of an older generation comes from a superseded target; for one of a newer generation, this instance first has to learn of
  // that generation.
  if (account?.releaseRequest?.generation === generation) return 'release';
  // A pending claim is retried while Kafka is unreachable, and could later fence the account's new owner.
  const isClaimed = account?.owner?.instance === instance && account.isClaimPending !== true;
  return isClaimed ? 'stay' : 'drop';
}

function stepWhenAssigned(situation: StepInput): AccountStep {
  const { instance, phase, generation, members, account, releaseRequestedMs } = situation;
  const owner = account?.owner;
  // A claim restores the remaining images itself; those restored so far stay in the store.
  const claim = phase === 'warming' ? 'drop' : 'claim';
  if (!owner || owner.instance === instance) return claim;
  // The owner was assigned the account in a generation that this instance does not know yet.
  if (owner.generation > generation) return 'stay';
  if (!members.has(owner.instance)) return claim;
  if (phase === 'nothing') return 'warm';
  if (phase === 'warming') return 'stay';
  if (releaseRequestedMs === undefined) return 'ask';
  return releaseRequestedMs >= RELEASE_TIMEOUT_MS ? 'claim' : 'stay';
}
