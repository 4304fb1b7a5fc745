import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Resource } from '../../../src/config/config.ts';
import { Chance } from '../../support/chance.ts';
import { SimTime } from '../../sim/sim-time.ts';
import { SimClient } from '../ledger/sim-client.ts';
import type { Arrival, Begun, ClientOptions, ClientWorld } from '../ledger/sim-client.ts';
import { SimGuest } from './sim-guest.ts';
import { SimLedger } from '../ledger/sim-ledger.ts';
import { SimSignals } from './sim-signals.ts';

const SEEDS = Number(process.env.LEDGER_SEEDS ?? 20);
const FIRST = Number(process.env.LEDGER_SEED ?? 1);
const ROUNDS = 6;
const MINUTE_MS = 60_000;
const FAULTS = ['none', 'killed', 'paused', 'stopped', 'no Kafka', 'idle'] as const;

function overruns(arrivals: readonly Arrival[], endpoint: string, most: number): string[] {
  const found = arrivals.filter((one) => one.endpoint === endpoint);
  found.sort((a, b) => a.at - b.at);
  return found.flatMap(({ at }, k) => {
    const last = found[k + most];
    return last !== undefined && last.at - at < MINUTE_MS
      ? [`${endpoint}: more than ${most} from ${at} on, ${last.at - at} ms`]
      : [];
  });
}

/** A service that is killed, paused, stopped, or hardly asks, and guests who come at any time. */
async function beside(seed: number) {
  const chance = new Chance(seed);
  const time = new SimTime(1_750_000_000_000);
  const signals = new SimSignals(time, chance);
  const onBegun = (begun: Begun) => signals.serve(begun);
  const world: ClientWorld = { time, chance, ledger: new SimLedger(time), arrivals: [], onBegun };
  const isIdle = chance.is(0.3);
  const config: ClientOptions['config'] = {
    description: WINE,
    account: 'main',
    quota: { perMinute: 100, loginsPerMinute: 10, scope: 'endpoint', firstReadPercent: 73 },
    resources: ['orders', 'products'] as Resource[],
    poll: { intervalMs: undefined } as ClientOptions['config']['poll'],
  };
  const run = (name: string) =>
    new SimClient(world, {
      ...{ name, config, skewMs: 0, pauseMs: isIdle ? 40_000 : chance.pick([0, 0, 3_000]) },
      folder: { starts: new Map(), writer: undefined },
    });
  const errors: unknown[] = [];
  let guests = 0;
  const visit = async (): Promise<void> => {
    const name = `g${(guests += 1)}`;
    const batches = { login: 1, orders: chance.pick([1, 5, 10, 60]) };
    const guest = new SimGuest(world, signals, { name, config, batches });
    await time.sleep(chance.below(30_000));
    if (chance.is(0.3)) guest.pause(chance.below(40_000));
    await time.sleep(chance.below(60_000));
    if (chance.is(0.4)) guest.kill();
    else await guest.stop();
    if (guest.error !== undefined) errors.push(guest.error);
  };
  const visits = async (): Promise<void> => {
    for (let k = 0; k < ROUNDS * 2; k++) {
      void visit();
      await time.sleep(chance.below(60_000));
    }
  };
  const visiting = visits();
  let isDone = false;
  void visiting.then(() => (isDone = true));
  let client: SimClient | undefined = chance.is(0.5) ? run('p0') : undefined;
  for (let k = 1; k <= ROUNDS; k++) {
    await time.pass(20_000 + chance.below(60_000));
    const fault = chance.pick(FAULTS);
    if (fault === 'killed') client?.kill();
    if (fault === 'paused') client?.pause(5_000 + chance.below(90_000));
    if (fault === 'no Kafka' && client) client.isCutOff = true;
    if (fault === 'stopped' && client) await time.until(done(client.stop()), Infinity);
    if (chance.is(0.2)) world.ledger.moveLeader(chance.below(600_000) - 300_000);
    await time.pass(chance.below(40_000));
    if (fault !== 'none' || !client) {
      const before = client;
      client = run(`p${k}`);
      if (fault === 'no Kafka') before?.kill();
    }
  }
  await time.until(() => isDone, Infinity);
  client?.kill();
  const { arrivals } = world;
  const found = ['orders', 'products'].flatMap((name) => overruns(arrivals, name, 100));
  const asked = arrivals.filter((one) => one.client.startsWith('g')).length;
  return {
    found: [...found, ...overruns(arrivals, 'login', 10)],
    asked,
    all: arrivals.length,
    errors,
  };
}

function done(work: Promise<unknown>): () => boolean {
  let isDone = false;
  void work.then(() => (isDone = true));
  return () => isDone;
}

describe('guests of an account', () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    it(`and its service never exceed the quota, seed ${seed}`, { timeout: 120_000 }, async () => {
      const { found, asked, all, errors } = await beside(seed);
      if (process.env.LEDGER_TELL)
        console.log(`seed ${seed}: ${asked} of ${all}`, errors.map(String));
      expect(found.slice(0, 5)).toEqual([]);
      expect(asked).toBeGreaterThan(0);
    });
  }
});
