import type { FleetAccount } from '../observe/fleet-view.ts';
import type { AccountFiles } from './account-files.ts';
import type { FleetGroupState } from './fleet-group.ts';
import type { FleetTopicState } from './fleet-log.ts';
import { fleetViewOf } from './fleet-view-of.ts';

/** State of a fleet, as seen by a process that is not a member. */
export interface FleetOverview extends FleetTopicState {
  readonly group: FleetGroupState;
  /** Account files of the calling process; empty if that process has no `ACCOUNTS_DIR`. */
  readonly files: AccountFiles;
  readonly now: number;
}

export interface AccountOverview extends Omit<FleetAccount, 'since'> {
  /**
   * When the account entered its current state, in epoch ms; undefined if no message in the topic says when, as after a crash of the owner.
   */
  readonly since: number | undefined;
}

/** Returns the state of each account of a fleet. Accounts with problems come first; the rest is sorted by state, then by name. */
export function accountOverviews(fleet: FleetOverview): readonly AccountOverview[] {
  const { assignment } = fleet.group;
  const { accounts } = fleetViewOf({
    ...fleet,
    ...{ name: '', generation: undefined, localAccounts: new Map(), assignment },
  });
  return accounts
    .map((account) => accountOverview(account, fleet))
    .sort((a, b) => rankOf(a) - rankOf(b) || (a.account < b.account ? -1 : 1));
}

/** Whether an operator has to act: the account has no owner, its file is invalid, it failed, or it is quarantined. */
export function hasProblem({ state }: Pick<FleetAccount, 'state'>): boolean {
  return PROBLEM_STATES.has(state);
}

const PROBLEM_STATES = new Set<FleetAccount['state']>([
  'without-owner',
  'wrong-file',
  'failed',
  'quarantined',
]);
const RANKS = ['moving', 'starting', 'running'] as const satisfies FleetAccount['state'][];

function rankOf(account: AccountOverview): number {
  if (hasProblem(account)) return 0;
  const rank = 1 + RANKS.findIndex((state) => state === account.state);
  return account.problem === undefined ? rank : 0.5;
}

/**
 * Converts an account of the fleet view to an overview, whose `problem` says why a running account is not ready, or why an account has no
 * owner, for example because no member has its file.
 */
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

/** Returns why a running account is not ready; undefined if it is ready or only starting up. */
function whyNotReady({ figures }: FleetAccount): string | undefined {
  if (!figures || figures.ready) return undefined;
  return figures.causes.every((cause) => cause === 'starting') ? undefined : figures.reasons[0];
}
