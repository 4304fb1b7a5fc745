import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

/** `SIM_SEED=7` runs one seed alone, with what happened in it; `SIM_SEEDS` so many of them. */
const ONE = process.env.SIM_SEED;
const COUNT = Number(process.env.SIM_SEEDS ?? 500);
const SHOWN = 5;

/** Runs every n-th seed, so that several files share them. */
export function seeds(first: number, every: number): void {
  it(`keeps every promise: seeds ${first}, ${first + every}, ... through crashes, pauses, faults and lost commits`, async () => {
    const mine = ONE === undefined ? range(first, every) : first === 1 ? [Number(ONE)] : [];
    const began = performance.now();
    const failed: string[] = [];
    const sums = { processes: 0, events: 0, deletions: 0 };
    for (const seed of mine) {
      const { violations, traits, trace, ...run } = await simulate(seed);
      sums.processes += run.processes;
      sums.events += run.events;
      sums.deletions += run.deletions;
      if (ONE !== undefined) console.log(traits, trace.join('\n'));
      if (violations.length > 0) failed.push(report(seed, violations, trace));
    }
    const ms = ((performance.now() - began) / Math.max(1, mine.length)).toFixed(0);
    console.log(`${mine.length} seeds, ${ms} ms each:`, sums);
    expect(failed.slice(0, SHOWN).join('\n\n')).toBe('');
  }, 1_200_000);
}

function range(first: number, every: number): number[] {
  return Array.from({ length: COUNT }, (_, k) => k + 1).filter((k) => k % every === first % every);
}

/** A failing seed, what it broke, and what the trace says of the first key that it broke it for. */
function report(seed: number, violations: readonly string[], trace: readonly string[]): string {
  const key = /^(\d+)/.exec(violations[0]!)?.[1];
  const told = trace.filter((line) => key === undefined || line.includes(` ${key}`) || !line.includes('publishes')); // prettier-ignore
  return [`SIM_SEED=${seed}`, ...violations.slice(0, SHOWN), ...told.slice(-40)].join('\n');
}
