import { describe, expect, it } from 'vitest';
import { describedQuota } from '../../../src/description/quota-limits.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { Chance } from '../../support/chance.ts';
import { SimTime } from '../../sim/sim-time.ts';
import { overruns } from './overruns.ts';
import { SimClient } from './sim-client.ts';
import type { ClientOptions, ClientWorld } from './sim-client.ts';
import { SimLedger } from './sim-ledger.ts';

const SEEDS = Number(process.env.LEDGER_SEEDS ?? 8);
const TAKEOVERS = 8;
const LISTS = ['orders', 'products'];
const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;

interface Case {
  readonly limits: readonly string[];
  readonly own: Readonly<Record<string, string>>;
  /** A limit that the server keeps: for all lists or for one, in any window of this length. */
  readonly counted: readonly [list: string | undefined, most: number, windowMs: number][];
}

const CASES: readonly Case[] = [
  {
    limits: ['3000/h per key', '2/s per key'],
    own: {},
    counted: [
      [undefined, 50, MINUTE_MS],
      [undefined, 2, SECOND_MS],
    ],
  },
  {
    limits: ['3000/h per key', '40/min per list'],
    own: { products: '1/s' },
    counted: [
      [undefined, 50, MINUTE_MS],
      ['orders', 40, MINUTE_MS],
      ['products', 1, SECOND_MS],
    ],
  },
  {
    limits: ['57600/d per list'],
    own: { products: '20/min' },
    counted: [
      ['orders', 40, MINUTE_MS],
      ['products', 20, MINUTE_MS],
    ],
  },
];

const folderOf = (): ClientOptions['folder'] => ({ starts: new Map(), writer: undefined });

/** Instances that take an account over from each other, by SIGKILL, by a clean stop, or beside one that still runs. */
async function takeovers(seed: number, { limits, own }: Case): Promise<ClientWorld> {
  const time = new SimTime(1_750_000_000_000);
  const chance = new Chance(seed);
  const world: ClientWorld = { time, chance, ledger: new SimLedger(time), arrivals: [] };
  const lists = WINE.lists.map((list) => ({ ...list, quota: own[list.name] }));
  const description = { ...WINE, quota: { limits: [...limits] }, lists };
  const { scope, perMinute } = describedQuota(description);
  const start = (name: string, folder: ClientOptions['folder']) =>
    new SimClient(world, {
      ...{ name, folder, skewMs: chance.pick([0, 300_000]), pauseMs: chance.pick([0, 500]) },
      config: {
        ...{ description, account: 'main', resources: LISTS },
        quota: { perMinute, loginsPerMinute: 10, scope, firstReadPercent: 73 },
        poll: { intervalMs: undefined } as ClientOptions['config']['poll'],
      },
    });
  let folder = folderOf();
  let client = start('p0', folder);
  for (let k = 1; k <= TAKEOVERS; k++) {
    await time.pass(20_000 + chance.below(100_000));
    const fault = chance.pick(['killed', 'stopped', 'beside'] as const);
    if (fault === 'killed') client.kill();
    if (fault === 'stopped') {
      let isDone = false as boolean;
      void client.stop().then(() => (isDone = true));
      await time.until(() => isDone, Infinity);
    }
    await time.pass(chance.below(400));
    if (fault === 'beside' || chance.is(0.5)) folder = folderOf();
    const before = client;
    client = start(`p${k}`, folder);
    await time.pass(20_000);
    before.kill();
    expect(client.error, `${fault} ${k}`).toBeUndefined();
  }
  await time.pass(3 * MINUTE_MS);
  client.kill();
  return world;
}

describe('takeovers of an account with limits of several units and scopes', () => {
  describe.each(CASES.map((each) => [each.limits.join(', '), each] as const))('%s', (_, each) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      it(`never exceed one of them, seed ${seed}`, { timeout: 120_000 }, async () => {
        const { arrivals, time } = await takeovers(seed, each);
        const lists = arrivals.filter(({ endpoint }) => endpoint !== 'login');
        const over = each.counted.flatMap(([list, most, windowMs]) => {
          const counted = lists.filter(({ endpoint }) => list === undefined || endpoint === list);
          return overruns(counted, `${most} in ${windowMs} ms of ${list ?? 'all'}`, most, windowMs);
        });
        expect(over.slice(0, 5)).toEqual([]);
        for (const list of LISTS) {
          const since = lists.filter(
            ({ endpoint, at }) => endpoint === list && at > time.now() - 2 * MINUTE_MS,
          );
          expect(since.length, list).toBeGreaterThan(10);
        }
      });
    }
  });
});
