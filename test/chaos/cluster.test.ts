import { expect, it, onTestFinished } from 'vitest';
import { Chance } from '../support/chance.ts';
import { CLUSTER_FAULTS, KILLED, LEADER_MOVED, RESTARTED_GENTLY } from './cluster-faults.ts';
import { faultsFor, inRandomOrder } from './fault-queue.ts';
import { FAULTS } from './faults.ts';
import { Rounds } from './rounds.ts';
import {
  BROKERS,
  GOES_ON,
  IS_REAUTHENTICATED,
  IS_SHORT,
  ONLY,
  reportOf,
  SECONDS,
  SEED,
} from './settings.ts';
import { World } from './world.ts';

/** Connections are many, and each logs in again before three seconds are over, as long as it is used. */
const LOGINS_PER_SECOND = 1;

// With the other tests there is time for these alone.
const isInGate = IS_SHORT && BROKERS === '' && ONLY === '';
/** How long all stands before the first fault. */
const CALM_MS = isInGate ? 20_000 : 60_000;
const faults = faultsFor([...FAULTS, ...CLUSTER_FAULTS]);

it.skipIf(BROKERS === '1')(
  isInGate
    ? 'keeps every promise on three brokers: while nothing happens, and as leaders and brokers go'
    : `keeps every promise on three brokers through ${SECONDS} s of faults, seed ${SEED}`,
  async (test) => {
    expect(faults, `no fault has "${ONLY}" in its name`).not.toEqual([]);
    const world = await World.start({
      seed: SEED,
      cluster: { isReauthenticated: IS_REAUTHENTICATED },
    });
    if (typeof world === 'string') return test.skip(world);
    onTestFinished(() => world.close());
    const report = reportOf(3);
    if (report !== undefined) onTestFinished(() => world.saveLogs(report));
    const chance = new Chance(SEED);
    const rounds = new Rounds(world, chance, { report, goesOn: GOES_ON });

    await rounds.begin();
    const began = performance.now();
    if (ONLY === '') await rounds.calm(CALM_MS);
    if (isInGate) {
      for (const fault of [LEADER_MOVED, RESTARTED_GENTLY, KILLED]) await rounds.round(fault);
    } else {
      for (const fault of inRandomOrder(faults, chance)) {
        await rounds.round(fault);
        if (performance.now() > began + SECONDS * 1_000) break;
      }
    }
    if (IS_REAUTHENTICATED) {
      const seconds = (performance.now() - began) / 1_000;
      console.log('logins', world.cluster!.logins(), 'in', Math.round(seconds), 's');
      expect(world.cluster!.logins()).toBeGreaterThan(seconds * LOGINS_PER_SECOND);
    }
    await rounds.end(SEED);
  },
  SECONDS * 1_000 + 400_000,
);
