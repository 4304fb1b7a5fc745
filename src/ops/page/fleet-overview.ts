// The summary at the top of a fleet's page: accounts by state, and by the instance that runs them.

import type { FleetState } from '../../observe/fleet-view.ts';
import type { FleetStatus } from '../status/status-json.ts';
import { byId, gauge, html, keyedList, setAttributes, setText, show } from './dom.ts';
import { count, plural } from './words.ts';

/** Displayed names of an account's states, the best state first. */
export const ACCOUNT_STATE_NAMES: Readonly<Record<FleetState, string>> = {
  running: 'running',
  starting: 'starting',
  moving: 'moving',
  'without-owner': 'without an owner',
  failed: 'failed',
  'wrong-file': 'wrong file',
  quarantined: 'quarantined',
};

/** Returns a function that updates the counts of accounts by state. All states are shown, in a fixed order. */
export function fleetStatesView(): (status: FleetStatus) => void {
  const parent = byId('states');
  const updates = (Object.keys(ACCOUNT_STATE_NAMES) as FleetState[]).map((state) => {
    const value = html('span', { class: 'value' });
    const unit = html('span', { class: 'unit state' }, ACCOUNT_STATE_NAMES[state]);
    const element = html(
      'li',
      { 'data-state': state },
      html('p', { class: 'figure' }, value),
      html('p', {}, unit),
    );
    parent.append(element);
    return ({ accounts }: FleetStatus) => {
      const number = accounts.filter((each) => each.state === state).length;
      setText(value, count(number));
      setAttributes(element, { 'data-none': String(number === 0) });
    };
  });
  return (status) => updates.forEach((update) => update(status));
}

interface Instance {
  readonly name: string;
  readonly isThis: boolean;
  readonly isMember: boolean;
  readonly accounts: number;
  /** Number of accounts on the instance that has the most: the end of the gauge's scale. */
  readonly most: number;
}

/** Returns a function that updates the list of instances: the members of the fleet, and any other instance that owns an account. */
export function fleetInstancesView(): (status: FleetStatus) => void {
  const note = byId('instances-note');
  const none = byId('instances-none');
  const list = keyedList<Instance>({
    parent: byId('instances'),
    key: ({ name }) => name,
    make: ({ name }) => {
      const bar = gauge(`Accounts of ${name}`);
      const who = html('span', { class: 'note' });
      const figure = html('span', { class: 'figure' });
      const label = html('span', { class: 'name' }, html('bdi', {}, name), ' ', who);
      return {
        element: html('li', {}, label, bar.element, figure),
        update: ({ accounts, most, isThis, isMember }) => {
          const text = plural(accounts, 'account');
          bar.update(accounts, most, text);
          setText(figure, text);
          setText(who, isThis ? 'this one' : isMember ? '' : 'no longer in the group');
        },
      };
    },
  });
  return ({ instances, instance, accounts }) => {
    const counts = new Map(instances.map((name) => [name, 0]));
    for (const { owner } of accounts) {
      if (owner !== null) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    const most = Math.max(1, ...counts.values());
    const names = [...counts.keys()].sort();
    list(
      names.map((name) => ({
        name,
        isThis: name === instance,
        isMember: instances.includes(name),
        accounts: counts.get(name)!,
        most,
      })),
    );
    setText(note, `${instances.length} in the group`);
    show(none, names.length === 0);
  };
}
