import type { FleetAccount, FleetState } from '../observe/fleet-view.ts';
import { describeError } from '../core/errors.ts';
import type { AccountFiles } from './account-files.ts';
import type { AccountRun } from './account-run.ts';
import type { FleetGroupState } from './fleet-group.ts';
import type { FleetTopicState } from './fleet-log.ts';
import { isQuarantined } from './crashes.ts';
import type { FleetAssignment } from './member-metadata.ts';

/** State of a fleet, as known to one process. */
export interface FleetViewInput extends FleetTopicState {
  readonly assignment: FleetAssignment | undefined;
  readonly files: AccountFiles;
  /** Accounts of this process by name, each from its assignment until it has stopped. Empty if the process is not a member of the fleet. */
  readonly localAccounts: ReadonlyMap<string, { readonly run: Pick<AccountRun, 'failure'> }>;
  readonly now: number;
}

/** Time in ms after which an unfinished handover or start of an account is a problem, counted from the newest message about the account. */
const SLOW_HANDOVER_MS = 30_000;

/** Returns the state of each account of a fleet, sorted by name, as operators see it. */
export function accountViews(known: FleetViewInput): readonly FleetAccount[] {
  const { assignment, accounts, files } = known;
  const assigned = new Set([
    ...(assignment?.accounts.keys() ?? []),
    ...(assignment?.apiKeyConflicts?.keys() ?? []),
  ]);
  const names = [...new Set([...files.keys(), ...accounts.keys(), ...assigned])];
  return (
    names
      .sort()
      // An account without a file and without an owner was removed properly: not shown.
      .filter((each) => files.has(each) || assigned.has(each) || accounts.get(each)?.owner)
      .map((account) => accountView(account, known))
  );
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
      'three instances crashed right after claiming it: change a setting in its file to have it claimed again';
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
 * Returns the text of the error that prevents serving the account; undefined if there is none. The error comes from this process if the
 * account is in `localAccounts`, otherwise from the newest report of the instance with the id `instance`.
 */
function failureOf(
  account: string,
  { localAccounts, reports }: FleetViewInput,
  instance: string | undefined,
): string | undefined {
  const own = localAccounts.get(account)?.run;
  if (own) return own.failure && describeError(own.failure.error);
  return instance === undefined ? undefined : reports.get(instance)?.accounts[account]?.failed;
}

/** Returns the error text for an account that has the same API key as another account. */
export function apiKeyConflictText(account: string, other: string): string {
  return `${account}.env: API_KEY is also in ${other}.env at another instance: give all instances the same files in ACCOUNTS_DIR`;
}

/** State of a fleet, as seen by a process that is not a member. */
export interface FleetOverview extends FleetTopicState {
  readonly group: FleetGroupState;
  /** Account files of the calling process; empty if that process has no `ACCOUNTS_DIR`. */
  readonly files: AccountFiles;
  readonly now: number;
}

export interface AccountOverview extends Omit<FleetAccount, 'since'> {
  /**
   * Begin of the account's current state, in epoch ms. Undefined if there is no message about the account, or if the owner has left the
   * fleet without a release.
   */
  readonly since: number | undefined;
}

/** Ranks of the states in the overview; the lowest rank comes first. Rank 0: an operator has to act. */
const RANKS: Readonly<Record<FleetState, number>> = {
  ...{ 'without-owner': 0, 'wrong-file': 0, failed: 0, quarantined: 0 },
  ...{ moving: 1, starting: 2, running: 3 },
};

/** Returns the state of each account of a fleet. Accounts with problems come first; the rest is sorted by state, then by name. */
export function accountOverviews(fleet: FleetOverview): readonly AccountOverview[] {
  const { assignment } = fleet.group;
  return accountViews({ ...fleet, localAccounts: new Map(), assignment })
    .map((account) => accountOverview(account, fleet))
    .sort((a, b) => rankOf(a) - rankOf(b) || (a.account < b.account ? -1 : 1));
}

/** Whether an operator has to act: the account has no owner, its file is invalid, it failed, or it is quarantined. */
export function hasProblem({ state }: Pick<FleetAccount, 'state'>): boolean {
  return RANKS[state] === 0;
}

function rankOf({ state, problem }: AccountOverview): number {
  return problem === undefined ? RANKS[state] : Math.min(RANKS[state], 0.5);
}

/** Converts an account of the fleet view to an overview, and adds why a running account is not ready or why an account has no owner. */
function accountOverview(one: FleetAccount, { accounts, group }: FleetOverview): AccountOverview {
  const { account, owner, state } = one;
  const known = accounts.get(account);
  const hasDeparted = known?.owner !== undefined && owner === undefined;
  const now = { ...one, since: hasDeparted || !known ? undefined : one.since };
  if (state === 'running') return { ...now, problem: whyNotReady(one) };
  if (state !== 'without-owner') return now;
  const last = hasDeparted ? `; ${known.owner.name} was its last owner and has left the fleet` : '';
  return { ...now, problem: `${whyUnowned(account, group) ?? one.problem}${last}` };
}

function whyUnowned(account: string, { members }: FleetGroupState): string | undefined {
  if (members.length === 0) return 'no instance runs';
  return members.some(({ configured }) => configured.includes(account))
    ? undefined
    : 'no instance has its file';
}

/**
 * Returns why a running account is not ready; undefined if it is ready or only starting up, or if its owner has not reported any figures.
 */
function whyNotReady({ figures }: FleetAccount): string | undefined {
  if (!figures || figures.ready) return undefined;
  return figures.causes.every((cause) => cause === 'starting') ? undefined : figures.reasons[0];
}
