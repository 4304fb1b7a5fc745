import { runSeeds } from '../run-seeds.ts';
import { simulateFleet } from './fleet-simulation.ts';

/** So many of `FLEET_SEEDS`, or else `SIM_SEEDS` (500). */
export function fleetSeeds(part: number, parts: number): void {
  let longestMs = 0;
  runSeeds({
    name: 'a fleet keeps every promise through kills, pauses, cuts and rebalances',
    count: Number(process.env.FLEET_SEEDS ?? process.env.SIM_SEEDS ?? 500),
    ...{ part, parts },
    simulate: async (seed, onLine) => {
      const run = await simulateFleet(seed, onLine);
      longestMs = Math.max(longestMs, run.longestMs);
      return run;
    },
    expectOf: () => console.log('the longest time without an owner, ms:', longestMs),
  });
}
