import type { FleetAccount } from '../observe/fleet-view.ts';
import type { AccountFiles } from './account-files.ts';
import type { FleetGroup } from './fleet-group.ts';
import type { FleetWords } from './fleet-words.ts';
import { fleetViewOf } from './fleet-view-of.ts';

/** What is known of a fleet from outside. */
export interface FleetNow extends FleetWords {
  readonly group: FleetGroup;
  /** Of whoever asks; none where that has no ACCOUNTS_DIR. */
  readonly files: AccountFiles;
  readonly now: number;
}

/** An account, as it is known from outside. */
export interface AccountNow extends Omit<FleetAccount, 'since'> {
  /** Undefined where nobody has said it: of an owner that died, say. */
  readonly since: number | undefined;
}

/** How each account is, for one who runs none of them: what is wrong first, then by name. */
export function fleetAccountsNow(fleet: FleetNow): readonly AccountNow[] {
  const { words, reports, group, files, now } = fleet;
  const { accounts } = fleetViewOf({
    ...{ name: '', generation: undefined, here: new Map(), given: group.given },
    ...{ words, reports, files, now },
  });
  return accounts
    .map((account) => accountNow(account, fleet))
    .sort((a, b) => rankOf(a) - rankOf(b) || (a.account < b.account ? -1 : 1));
}

/** Whether somebody has to do something. */
export function isWrong({ state }: Pick<FleetAccount, 'state'>): boolean {
  return WRONG.has(state);
}

const WRONG = new Set<FleetAccount['state']>([
  'without-owner',
  'wrong-file',
  'failed',
  'quarantined',
]);
const RANKS = ['moving', 'starting', 'running'] as const satisfies FleetAccount['state'][];

function rankOf(account: AccountNow): number {
  if (isWrong(account)) return 0;
  const rank = 1 + RANKS.findIndex((state) => state === account.state);
  return account.problem === undefined ? rank : 0.5;
}

/** An instance knows its own files; from here, those that the members have said they have are known as well. */
function accountNow(one: FleetAccount, { words, group }: FleetNow): AccountNow {
  const { account, owner, state } = one;
  const word = words.get(account);
  const isGone = word?.owner !== undefined && owner === undefined;
  const now = { ...one, since: isGone || !word ? undefined : one.since };
  if (state === 'running') return { ...now, problem: whyNotReady(one) };
  if (state !== 'without-owner') return now;
  const last = isGone ? `; ${word.owner.name} ran it last, and is gone` : '';
  return { ...now, problem: `${whyNobody(account, group) ?? one.problem}${last}` };
}

function whyNobody(account: string, { told }: FleetGroup): string | undefined {
  if (told.length === 0) return 'no instance runs';
  return told.some(({ known }) => known.includes(account)) ? undefined : 'no instance has its file';
}

/** Of an account that only has to catch up nothing is wrong. */
function whyNotReady({ figures }: FleetAccount): string | undefined {
  if (!figures || figures.ready) return undefined;
  return figures.causes.every((cause) => cause === 'starting') ? undefined : figures.reasons[0];
}
