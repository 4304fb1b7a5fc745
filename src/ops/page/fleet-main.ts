import type { FleetStatus } from '../status/status-json.ts';
import { byId, setText } from './dom.ts';
import { fleetAccountsView } from './fleet-accounts.ts';
import { fleetVerdictOf } from './fleet-verdict.ts';
import { fleetInstancesView, fleetStatesView } from './fleet-overview.ts';
import { livePage } from './live-page.ts';
import { ago } from './words.ts';

// The status page of a fleet, as seen by one of its instances.

const who = byId('who');
const whoView = ({ instance, prefix, generation, version, since, at }: FleetStatus) => {
  const group = generation === null ? 'in no group' : `generation ${generation} of the group`;
  const running = ago(at - since).replace(' ago', '');
  setText(
    who,
    `fleet ${prefix}.*, reported by ${instance}, ${group}, version ${version}, up for ${running}`,
  );
};
livePage<FleetStatus>({
  verdictOf: fleetVerdictOf,
  nameOf: ({ prefix }) => `fleet ${prefix}`,
  views: [whoView, fleetStatesView(), fleetInstancesView(), fleetAccountsView()],
});
