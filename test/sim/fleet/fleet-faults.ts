import type { Chance } from '../../support/chance.ts';
import type { FleetInstance } from './fleet-instance.ts';

/** What may happen to a fleet. */
export const FAULTS = [
  'start',
  'stop',
  'kill',
  'kill',
  'killed at a step',
  'paused at a step',
  'cut off at a step',
  'pause',
  'pause for long',
  'cut off from Kafka',
  'cut off from the API',
  'cut off from the coordinator',
  'coordinator away',
  'coordinator dies in a rebalance',
  'files',
  'rebalance storm',
  'leader of a ledger moves',
  'clock is set',
] as const;
export type Fault = (typeof FAULTS)[number];

/** Steps at which something happens to an instance: others wait for it then, or something is left half done. */
export const TRAPS = [
  'join answered',
  'sync',
  'sync answered',
  'asks',
  'said',
  'takes',
  'take over',
  'taken over',
  'claimed',
  'declare',
  'declared',
  'beside',
  'warm',
] as const;

/** Which of them; one at least is left alone. */
export function victim(
  instances: readonly FleetInstance[],
  chance: Chance,
): FleetInstance | undefined {
  const running = instances.filter(({ state }) => state === 'running');
  return running.length > 1 ? chance.pick(running) : undefined;
}
