import type { FleetAccountStatus, FleetStatus } from '../status/fleet-status-json.ts';
import { byId, setText, show } from './dom.ts';
import { accountRow } from './fleet-account-row.ts';
import type { ToldAccount } from './fleet-account-row.ts';
import { healthOf, rank } from './fleet-health.ts';
import { keyedList } from './keyed-list.ts';
import { shownChoice } from './shown-choice.ts';

type Told = FleetAccountStatus & Pick<ToldAccount, 'at'>;

/** Which accounts can be shown, and what is said where there are none. */
const CHOICES = {
  all: { label: 'all', none: 'No account is known yet.', has: () => true },
  wrong: {
    label: 'not well',
    none: 'Every account runs and is ready.',
    has: (each: Told) => healthOf(each, each.at) !== 'good',
  },
  here: {
    label: 'run here',
    none: 'This instance runs no account.',
    has: ({ isHere }: Told) => isHere,
  },
} as const;
type Choice = keyof typeof CHOICES;

/** A row for each account: what is wrong first, then by name. */
export function fleetAccountsView(): (status: FleetStatus) => void {
  const none = byId('accounts-none');
  const list = keyedList<ToldAccount>({
    parent: byId('accounts'),
    key: ({ account }) => account,
    make: accountRow,
  });
  let newest: FleetStatus | undefined;
  const labels = Object.entries(CHOICES).map(([name, { label }]) => ({ name, label }));
  const choice = shownChoice(byId('shown'), labels, () => newest && update(newest));
  const update = (status: FleetStatus) => {
    newest = status;
    const { at, accounts, instance } = status;
    const all = accounts.map((each) => ({ ...each, at, instance }));
    choice.count((name) => all.filter(CHOICES[name as Choice].has).length);
    const { has, none: text } = CHOICES[choice.chosen() as Choice];
    const shown = all
      .filter(has)
      .map((each) => ({ each, order: rank(healthOf(each, at)) }))
      .sort((a, b) => a.order - b.order || (a.each.account < b.each.account ? -1 : 1))
      .map(({ each }) => each);
    list(shown);
    setText(none, text);
    show(none, shown.length === 0);
  };
  return update;
}
