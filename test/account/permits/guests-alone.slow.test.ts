import { describe, expect, it } from 'vitest';
import { Chance } from '../../support/chance.ts';
import { SimTime } from '../../sim/sim-time.ts';
import { overruns } from '../ledger/overruns.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { ClientOptions, ClientWorld } from '../ledger/sim-client.ts';
import { SimGuest } from './sim-guest.ts';
import { SimLedger } from '../ledger/sim-ledger.ts';
import { SimSignals } from './sim-signals.ts';

const MINUTE_MS = 60_000;

/** Guests that ask orders as often as they are let, where no service runs. */
function alone(perMinute: number, names: readonly string[], seed = 1) {
  const chance = new Chance(seed);
  const time = new SimTime(1_750_000_000_000);
  const signals = new SimSignals(time, chance);
  const world: ClientWorld = { time, chance, ledger: new SimLedger(time), arrivals: [] };
  const config: ClientOptions['config'] = {
    description: WINE,
    account: 'main',
    quota: { perMinute, loginsPerMinute: 10, scope: 'endpoint', firstReadPercent: 73 },
    resources: ['orders'],
    poll: { intervalMs: undefined } as ClientOptions['config']['poll'],
  };
  const batches = { login: 1, orders: 10 };
  const guests = names.map(
    (name) => new SimGuest(world, signals, { name, config, batches, patienceMs: Infinity }),
  );
  const orders = () => world.arrivals.filter(({ endpoint }) => endpoint === 'orders');
  const asked = (name: string) => orders().filter(({ client }) => client === name).length;
  const over = () => overruns(orders(), 'orders', perMinute, MINUTE_MS);
  return { time, guests, asked, over };
}

describe('guests where no service runs', () => {
  it('go on when the minute is over in which they used up the quota', async () => {
    const { time, guests, asked, over } = alone(100, ['g1']);
    await time.pass(5 * MINUTE_MS);
    expect(asked('g1')).toBeGreaterThan(4 * 100);
    expect(over()).toEqual([]);
    expect(guests[0]!.error).toBeUndefined();
  });

  it.each([1, 2, 3, 4])('share a low quota, and leave little of it, seed %i', async (seed) => {
    const names = ['g1', 'g2', 'g3'];
    const { time, asked, over } = alone(10, names, seed);
    await time.pass(10 * MINUTE_MS);
    const counts = names.map(asked);
    expect(Math.min(...counts)).toBeGreaterThan(10);
    expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(80);
    expect(over()).toEqual([]);
  });
});
