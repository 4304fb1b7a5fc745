import { expect, it, onTestFinished } from 'vitest';
import { Chance } from '../support/chance.ts';
import { faultsFor, inRandomOrder } from './fault-queue.ts';
import { FAULTS } from './faults.ts';
import { Rounds } from './rounds.ts';
import { BROKERS, GOES_ON, ONLY, reportOf, SECONDS, SEED } from './settings.ts';
import { World } from './world.ts';

const faults = faultsFor(FAULTS);

it.skipIf(BROKERS === '3')(
  `keeps every promise through ${SECONDS} s of faults, seed ${SEED}`,
  async (test) => {
    expect(faults, `no fault has "${ONLY}" in its name`).not.toEqual([]);
    const world = await World.start({ seed: SEED });
    if (typeof world === 'string') return test.skip(world);
    onTestFinished(() => world.close());
    const report = reportOf(1);
    if (report !== undefined) onTestFinished(() => world.saveLogs(report));
    const chance = new Chance(SEED);
    const rounds = new Rounds(world, chance, { report, goesOn: GOES_ON });

    await rounds.begin();
    const until = performance.now() + SECONDS * 1_000;
    for (const fault of inRandomOrder(faults, chance)) {
      await rounds.round(fault);
      if (performance.now() > until) break;
    }
    await rounds.end(SEED);
  },
  SECONDS * 1_000 + 400_000,
);
