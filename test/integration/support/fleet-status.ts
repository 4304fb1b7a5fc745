import type { FleetStatus } from '../../../src/ops/status/status-json.ts';
import type { Instance } from './fleet.ts';

/** What the page of an instance shows. */
export async function fleetStatusOf({ cli }: Instance): Promise<FleetStatus> {
  const { url } = await cli.logged(({ event }) => event === 'listening');
  const answer = await fetch(new URL('/status', String(url)));
  return (await answer.json()) as FleetStatus;
}
