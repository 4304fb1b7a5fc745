import { expect, it } from 'vitest';
import { simulateFleet } from './fleet-simulation.ts';

/**
 * `SIM_SEED=7` runs one seed alone, and tells what happened in it; `FLEET_SEEDS`, or else `SIM_SEEDS`, so many of them,
 * beginning with `SIM_FIRST` (1).
 */
const ONE = process.env.SIM_SEED;
const COUNT = Number(process.env.FLEET_SEEDS ?? process.env.SIM_SEEDS ?? 500);
const FIRST = Number(process.env.SIM_FIRST ?? 1);
const SHOWN = 5;

/** Runs every n-th seed, so that several files share them. */
export function fleetSeeds(part: number, parts: number): void {
  it(`a fleet keeps every promise through kills, pauses, cuts and rebalances: part ${part} of ${parts}`, async () => {
    const mine = ONE === undefined ? share(part, parts) : part === 1 ? [Number(ONE)] : [];
    const began = performance.now();
    const failed: number[] = [];
    const sums: Record<string, number> = {};
    let longestMs = 0;
    for (const seed of mine) {
      const run = await simulateFleet(seed);
      for (const [what, count] of Object.entries(run.sums)) sums[what] = (sums[what] ?? 0) + count;
      longestMs = Math.max(longestMs, run.longestMs);
      if (run.violations.length > 0) failed.push(seed);
    }
    const ms = ((performance.now() - began) / Math.max(1, mine.length)).toFixed(0);
    console.log(`${mine.length} seeds, ${ms} ms each:`, sums, { longestMs }, 'failed:', failed);
    if (ONE !== undefined && mine.length > 0) console.log(await story(Number(ONE)));
    const reports = await Promise.all(failed.slice(0, SHOWN).map(report));
    expect(reports.join('\n\n')).toBe('');
  }, 3_600_000);
}

function share(part: number, parts: number): number[] {
  const all = Array.from({ length: COUNT }, (_, k) => FIRST + k);
  return all.filter((_, k) => k % parts === part - 1);
}

/** All that happened in a run. */
async function story(seed: number): Promise<string> {
  const lines: string[] = [];
  const { draw } = await simulateFleet(seed, (line) => lines.push(line));
  return [JSON.stringify(draw, undefined, 1), ...lines].join('\n');
}

async function report(seed: number): Promise<string> {
  const { violations } = await simulateFleet(seed);
  return [`SIM_SEED=${seed}`, ...violations.slice(0, SHOWN)].join('\n');
}
