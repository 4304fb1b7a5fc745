import type { FleetAccount, FleetView } from '../observe/fleet-view.ts';
import { describeError } from '../core/errors.ts';
import type { AccountFiles } from './account-files.ts';
import type { FleetTopicState } from './fleet-log.ts';
import { isQuarantined } from './crashes.ts';
import type { FleetAssignment } from './member-metadata.ts';
import type { AccountPhase } from './next-step.ts';

/** Phase of each account at this instance and, if the account failed, its error. The keys are account names. */
export type LocalAccountPhases = ReadonlyMap<
  string,
  { readonly doing: AccountPhase; readonly error: unknown }
>;

export interface FleetViewInput extends FleetTopicState {
  /** Human-readable name of the instance. */
  readonly name: string;
  readonly generation: number | undefined;
  readonly assignment: FleetAssignment | undefined;
  readonly files: AccountFiles;
  readonly localAccounts: LocalAccountPhases;
  readonly now: number;
}

/** Time in ms after which an unfinished handover, or an unfinished start of an account, is reported as a problem. */
const SLOW_HANDOVER_MS = 30_000;

/** Converts the state of a fleet, as known to one instance, into the view that operators see. */
export function fleetViewOf(known: FleetViewInput): FleetView {
  const { name, generation, assignment, accounts, files } = known;
  const assigned = new Set([
    ...(assignment?.accounts.keys() ?? []),
    ...(assignment?.apiKeyConflicts?.keys() ?? []),
  ]);
  const names = [...new Set([...files.keys(), ...accounts.keys(), ...assigned])];
  return {
    instance: name,
    generation,
    instances: (assignment?.members ?? []).map((member) => member.name).sort(),
    accounts: names
      .sort()
      // An account without a file and without an owner was removed properly: not shown.
      .filter((each) => files.has(each) || assigned.has(each) || accounts.get(each)?.owner)
      .map((account) => accountView(account, known)),
  };
}

function accountView(account: string, known: FleetViewInput): FleetAccount {
  const { assignment, accounts, reports, files, now } = known;
  const word = accounts.get(account);
  const file = files.get(account);
  const target = assignment?.accounts.get(account);
  const members = new Map(assignment?.members.map((member) => [member.instance, member.name]));
  const owner = word?.owner && members.has(word.owner.instance) ? word.owner : undefined;
  const since = word?.updatedAt ?? now;
  const { figures } = (owner && reports.get(owner.instance)?.accounts[account]) ?? {};
  const one = { account, owner: owner?.name, since };
  const running = { ...one, since: word?.claimedAt ?? since, figures };
  if (file && 'error' in file) {
    const problem = describeError(file.error); // the file may be valid at another instance, which then serves the account
    return { ...(owner ? running : one), state: 'wrong-file', problem };
  }
  if (isQuarantined(word, now)) {
    const problem =
      'three instances crashed right after claiming it: change its file to have it claimed again';
    return { ...one, state: 'quarantined', problem };
  }
  const failure = failureOf(account, known, owner?.instance ?? target);
  if (failure !== undefined) return { ...one, state: 'failed', problem: failure };
  if (owner) {
    if (target === undefined || target === owner.instance) {
      return { ...running, state: 'running', problem: undefined };
    }
    const isSlow = now - since > SLOW_HANDOVER_MS && word?.releaseRequest !== undefined;
    const problem = isSlow ? `${owner.name} has not released it` : undefined;
    const moving = { ...one, figures, target: members.get(target) };
    return { ...moving, state: 'moving', problem };
  }
  if (target !== undefined) {
    const isSlow = now - since > SLOW_HANDOVER_MS;
    const problem = isSlow ? 'the instance that it is assigned to has not claimed it' : undefined;
    const state = isSlow ? 'without-owner' : 'starting';
    return { ...one, state, target: members.get(target), problem };
  }
  const twin = assignment?.apiKeyConflicts?.get(account);
  if (twin !== undefined) {
    return { ...one, state: 'wrong-file', problem: apiKeyConflictText(account, twin) };
  }
  const problem = file ? 'it is not assigned to an instance yet' : 'no instance has its file';
  return { ...one, state: 'without-owner', problem };
}

/**
 * Returns the text of the error because of which the account is not served; undefined without one. If this instance has the account, the
 * error is its own. Otherwise it is taken from the report of `instance`.
 */
function failureOf(
  account: string,
  { localAccounts, reports }: FleetViewInput,
  instance: string | undefined,
): string | undefined {
  const own = localAccounts.get(account);
  if (own) return own.error === undefined ? undefined : describeError(own.error);
  return instance === undefined ? undefined : reports.get(instance)?.accounts[account]?.failed;
}

/** Returns the error text for an account that has the same API key as another account. */
export function apiKeyConflictText(account: string, other: string): string {
  return `${account}.env: API_KEY is also in ${other}.env at another instance: give all instances the same files in ACCOUNTS_DIR`;
}
