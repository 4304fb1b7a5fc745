import type { FleetState } from '../../observe/fleet-view.ts';
import type { FleetStatus } from '../status/fleet-status-json.ts';
import { byId, html, setAttributes, setText } from './dom.ts';
import { count } from './words.ts';

/** States in words, what is good first. */
const STATES: Readonly<Record<FleetState, string>> = {
  running: 'running',
  starting: 'starting',
  moving: 'moving',
  'without-owner': 'without an owner',
  failed: 'failed',
  'wrong-file': 'wrong file',
  quarantined: 'quarantined',
};

/** What a state is called. */
export function stateName(state: FleetState): string {
  return STATES[state];
}

/** How many accounts are in each state: all states, always in the same places. */
export function fleetStatesView(): (status: FleetStatus) => void {
  const parent = byId('states');
  const updates = (Object.keys(STATES) as FleetState[]).map((state) => {
    const value = html('span', { class: 'value' });
    const unit = html('span', { class: 'unit state' }, STATES[state]);
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
