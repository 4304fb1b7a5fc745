import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { Chance } from '../sim/chance.ts';
import { FAULTS } from './faults.ts';
import type { Fault } from './faults.ts';
import { recoveries } from './recovery.ts';
import type { Round } from './recovery.ts';
import { disagreements, judge } from './verdict.ts';
import { PREFIX, World } from './world.ts';

/**
 * `CHAOS_SECONDS`: how long rounds go on; short runs leave out what takes long. `CHAOS_SEED`: the
 * order of the faults. `CHAOS_FAULT`: only those with this in their names. `CHAOS_REPORT`: a folder
 * for what was measured, as JSON, and for what the processes said.
 */
const SECONDS = Number(process.env.CHAOS_SECONDS ?? 60);
const SEED = Number(process.env.CHAOS_SEED ?? 1);
const ONLY = process.env.CHAOS_FAULT ?? '';
const REPORT = process.env.CHAOS_REPORT;
const isShort = SECONDS < 600;

/** How long after a fault everything may take, a whole window of the quota included. */
const PATIENCE_MS = 150_000;
/** What a process has read may not be published yet when a fault strikes. */
const IN_HAND_MS = 3_000;

it(
  `keeps every promise through ${SECONDS} s of faults, seed ${SEED}`,
  async (test) => {
    expect(faultsFor(ONLY), `no fault has "${ONLY}" in its name`).not.toEqual([]);
    const world = await World.start(SEED);
    if (typeof world === 'string') return test.skip(world);
    onTestFinished(() => world.close());
    if (REPORT !== undefined) onTestFinished(() => world.saveLogs(REPORT));
    if (REPORT !== undefined) mkdirSync(REPORT, { recursive: true });
    const chance = new Chance(SEED);
    const rounds: Round[] = [];
    const isCalm = (begin: number, end: number) =>
      begin > calmSince &&
      rounds.every(({ struckAt, agreedAt }) => end < struckAt - IN_HAND_MS || begin > agreedAt);

    await world.ready();
    await agreed(world, 'at the start');
    const calmSince = Date.now();
    const until = performance.now() + SECONDS * 1_000;
    const queue: Fault[] = [];
    while (performance.now() < until) {
      if (queue.length === 0) queue.push(...shuffled(chance));
      const fault = queue.shift()!;
      world.traffic(true);
      await sleep(2_000 + chance.below(4_000));
      const struckAt = Date.now();
      await fault.strike(world, chance);
      const liftedAt = Date.now();
      await sleep(2_000 + chance.below(2_000));
      world.traffic(false);
      await agreed(world, fault.name);
      const agreedAt = Date.now();
      expect(world.service.process.exitCode, `${fault.name}: the service has ended`).toBeNull();
      rounds.push({ fault: fault.name, struckAt, liftedAt, agreedAt });
      const verdict = judge(world, isCalm);
      const { violations, ...counts } = verdict;
      console.log(`round ${rounds.length}: ${fault.name}`, counts);
      expect(violations.slice(0, 5), fault.name).toEqual([]);
    }
    expect(await world.service.end('SIGTERM')).toBe(0);
    await world.topics.update();
    const { violations, ...counts } = judge(world, isCalm);
    expect(violations).toEqual([]);
    const table = recoveries(rounds, world.topics.events(`${PREFIX}.orders`));
    console.table(table);
    if (REPORT !== undefined)
      writeFileSync(join(REPORT, 'report.json'), JSON.stringify({ seed: SEED, rounds, counts, recoveries: table })); // prettier-ignore
  },
  SECONDS * 1_000 + 400_000,
);

/** Those that a run of this length can afford. */
function faultsFor(part: string): Fault[] {
  const isLeftOut = ({ isLong }: Fault) => isShort && isLong && part === '';
  return FAULTS.filter((fault) => fault.name.includes(part) && !isLeftOut(fault));
}

/** Every fault once, in an order of its own. */
function shuffled(chance: Chance): Fault[] {
  const faults = faultsFor(ONLY);
  for (let k = faults.length - 1; k > 0; k--) {
    const other = chance.below(k + 1);
    [faults[k], faults[other]] = [faults[other]!, faults[k]!];
  }
  return faults;
}

/** Resolves when the topics say what the API says, which stands still. */
async function agreed(world: World, when: string): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    await world.topics.update();
    const wrong = disagreements(world);
    if (wrong.length === 0) return;
    if (performance.now() > until) {
      const last = world.service.stderr().split('\n').slice(-15).join('\n');
      throw new Error(
        `${when}: ${wrong.length} keys disagree, ${wrong.slice(0, 3).join('; ')}\n${last}`,
      );
    }
    await sleep(300); // between two looks
  }
}
