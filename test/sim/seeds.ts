import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

/**
 * `SIM_SEED=7` runs one seed alone, and tells what happened in it; `SIM_SEEDS` so many of them,
 * beginning with `SIM_FIRST` (1).
 */
const ONE = process.env.SIM_SEED;
const COUNT = Number(process.env.SIM_SEEDS ?? 500);
const FIRST = Number(process.env.SIM_FIRST ?? 1);
const SHOWN = 5;
/** Of so many seeds this much of what sweeps read must have come in known bytes, or that is not tried. */
const ENOUGH = 10;
const LEAST_KNOWN = 0.3;

/** Runs every n-th seed, so that several files share them. */
export function seeds(part: number, parts: number): void {
  it(`keeps every promise through crashes, pauses, faults and lost commits: part ${part} of ${parts}`, async () => {
    const mine = ONE === undefined ? share(part, parts) : part === 1 ? [Number(ONE)] : [];
    const began = performance.now();
    const failed: number[] = [];
    const sums: Record<string, number> = {};
    for (const seed of mine) {
      const run = await simulate(seed);
      for (const [what, count] of Object.entries(run.sums)) sums[what] = (sums[what] ?? 0) + count;
      if (run.violations.length > 0) failed.push(seed);
    }
    const ms = ((performance.now() - began) / Math.max(1, mine.length)).toFixed(0);
    console.log(`${mine.length} seeds, ${ms} ms each:`, sums, 'failed:', failed);
    if (ONE !== undefined && mine.length > 0) console.log(await story(Number(ONE)));
    const reports = await Promise.all(failed.slice(0, SHOWN).map(report));
    expect(reports.join('\n\n')).toBe('');
    const known = (sums['of them known'] ?? 0) / (sums['records swept'] ?? 0);
    if (mine.length >= ENOUGH) expect(known).toBeGreaterThan(LEAST_KNOWN);
  }, 3_600_000);
}

function share(part: number, parts: number): number[] {
  const all = Array.from({ length: COUNT }, (_, k) => FIRST + k);
  return all.filter((_, k) => k % parts === part - 1);
}

/** All that happened in a run. */
async function story(seed: number): Promise<string> {
  const lines: string[] = [];
  const { draw } = await simulate(seed, (line) => lines.push(line));
  return [JSON.stringify(draw, undefined, 1), ...lines].join('\n');
}

/** A failing seed, what it broke, and what happened around the first key that it broke it for. */
async function report(seed: number): Promise<string> {
  const lines: string[] = [];
  const { violations } = await simulate(seed, (line) => lines.push(line));
  const key = /^(\d+)/.exec(violations[0]!)?.[1];
  const told = lines.filter(
    (line) => !line.includes('publishes') || key === undefined || line.includes(` ${key}`),
  );
  return [`SIM_SEED=${seed}`, ...violations.slice(0, SHOWN), ...told.slice(-40)].join('\n');
}
