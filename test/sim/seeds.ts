import { expect } from 'vitest';
import { runSeeds } from './run-seeds.ts';
import { simulate } from './simulation.ts';

/** Number of seeds from which on the shares below are checked: the shares of fewer seeds vary too much. */
const ENOUGH = 25;
/** Minimum shares of the records read by sweeps that are known by their bytes, and known in runs: with less, these paths are not tested. */
const LEAST_KNOWN = 0.3;
const LEAST_IN_RUNS = 0.1;
const LINES = 40;

/** So many of `SIM_SEEDS` (500). */
export function seeds(part: number, parts: number): void {
  runSeeds({
    name: 'keeps every promise through crashes, pauses, faults and lost commits',
    count: Number(process.env.SIM_SEEDS ?? 500),
    ...{ part, parts, simulate },
    // What happened around the first key that it broke a promise for.
    tell: ({ violations }, lines) => {
      const key = /^(\d+)/.exec(violations[0]!)?.[1];
      const isTold = (line: string) =>
        !line.includes('publishes') || key === undefined || line.includes(` ${key}`);
      return lines.filter(isTold).slice(-LINES);
    },
    expectOf: (runs, sums) => {
      const share = (name: string) => (sums[name] ?? 0) / (sums['records swept'] ?? 0);
      if (runs < ENOUGH) return;
      expect(share('of them known')).toBeGreaterThan(LEAST_KNOWN);
      expect(share('of them in runs')).toBeGreaterThan(LEAST_IN_RUNS);
    },
  });
}
