import { expect } from 'vitest';
import { runSeeds } from './run-seeds.ts';
import { simulate } from './simulation.ts';

/** Of so many seeds this much of what sweeps read must have come in known bytes, or that is not tried. */
const ENOUGH = 10;
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
