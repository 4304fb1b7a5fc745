import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

/** `SIM_SEEDS=10000` for more of them, `SIM_SEED=7` for one alone, with what happened in it. */
const COUNT = Number(process.env.SIM_SEEDS ?? 200);
const ONE = process.env.SIM_SEED;

it('keeps every promise through crashes, pauses, faults and lost commits', async () => {
  const failed: string[] = [];
  const seeds = ONE === undefined ? Array.from({ length: COUNT }, (_, k) => k + 1) : [Number(ONE)];
  const began = performance.now();
  let events = 0;
  let deletions = 0;
  let processes = 0;
  for (const seed of seeds) {
    const run = await simulate(seed);
    events += run.events;
    deletions += run.deletions;
    processes += run.processes;
    if (ONE !== undefined) console.log(run.traits, run.trace.join('\n'));
    if (run.violations.length > 0) failed.push(`SIM_SEED=${seed}\n${run.violations.slice(0, 5).join('\n')}`); // prettier-ignore
  }
  const ms = (performance.now() - began) / seeds.length;
  console.log(`${seeds.length} seeds, ${ms.toFixed(1)} ms each: ${processes} processes, ${events} events, ${deletions} deletions`); // prettier-ignore
  expect(failed.slice(0, 10).join('\n\n')).toBe('');
}, 600_000);
