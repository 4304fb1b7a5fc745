import type { FleetStatus } from '../status/fleet-status-json.ts';
import { byId, html, setText, show } from './dom.ts';
import { gauge } from './gauge.ts';
import { keyedList } from './keyed-list.ts';
import { plural } from './words.ts';

interface Instance {
  readonly name: string;
  readonly isThis: boolean;
  readonly isMember: boolean;
  readonly accounts: number;
  /** Of the instance that has most. */
  readonly most: number;
}

/** Each instance with the accounts that it runs; also one that is no member any more, and still is said to run some. */
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
