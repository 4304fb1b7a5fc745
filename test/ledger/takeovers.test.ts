import { describe, expect, it } from 'vitest';
import type { Resource } from '../../src/config.ts';
import { Chance } from '../sim/chance.ts';
import { SimTime } from '../sim/sim-time.ts';
import { SimClient } from './sim-client.ts';
import type { Arrival, ClientOptions, ClientWorld } from './sim-client.ts';
import { SimLedger } from './sim-ledger.ts';

const SEEDS = Number(process.env.LEDGER_SEEDS ?? 20);
const FIRST = Number(process.env.LEDGER_SEED ?? 1);
const TAKEOVERS = 10;
const MINUTE_MS = 60_000;
const FAULTS = [
  'beside',
  'killed',
  'paused',
  'woken soon',
  'stopped',
  'no Kafka',
  'no API',
] as const;

/** Windows of a minute with more than the quota, as the server counts. */
function overruns(arrivals: readonly Arrival[], endpoint: string, most: number): string[] {
  const times = arrivals.filter((one) => one.endpoint === endpoint).map(({ at }) => at);
  times.sort((a, b) => a - b);
  return times.flatMap((at, k) => {
    const last = times[k + most];
    return last !== undefined && last - at < MINUTE_MS ? [`${endpoint}: more than ${most} from ${at} on`] : []; // prettier-ignore
  });
}

interface Took {
  readonly fault: (typeof FAULTS)[number];
  /** From the end of the one, or the beginning of the other, to the first request, ms. */
  readonly firstAfterMs: number;
  /** The longest time without a request in the two minutes behind it, of a busy list, ms. */
  readonly silenceMs: number;
}

async function takeovers(
  seed: number,
  quotaPerMinute: number,
): Promise<{ found: string[]; took: Took[] }> {
  const chance = new Chance(seed);
  const time = new SimTime(1_750_000_000_000);
  const world: ClientWorld = { time, chance, ledger: new SimLedger(time), arrivals: [] };
  const isShared = chance.is(0.3);
  const options = (name: string, folder: ClientOptions['folder']): ClientOptions => ({
    name,
    folder,
    config: {
      account: 'main',
      quota: {
        perMinute: quotaPerMinute,
        loginsPerMinute: 10,
        scope: isShared ? 'key' : 'endpoint',
        firstReadPercent: 73,
      },
      resources: ['orders', 'products'] as Resource[],
      poll: { intervalMs: undefined } as ClientOptions['config']['poll'],
    },
    skewMs: chance.pick([0, 300_000, -300_000]),
    pauseMs: chance.pick([0, 0, 0, 1_000, 5_000]),
  });
  const folderOf = () => ({ starts: new Map() }) as unknown as ClientOptions['folder'];
  let folder = folderOf();
  let client = new SimClient(world, options('p0', folder));
  await time.pass(80_000 + chance.below(40_000));
  const took: Took[] = [];
  for (let k = 1; k <= TAKEOVERS; k++) {
    const fault = chance.pick(FAULTS);
    const before = client;
    const isSameFolder = (fault === 'killed' || fault === 'stopped') && chance.is(0.4);
    if (!isSameFolder) folder = folderOf();
    if (fault === 'killed') before.kill();
    if (fault === 'paused') before.pause(12_000 + chance.below(60_000));
    if (fault === 'woken soon') before.pause(1_000 + chance.below(9_000));
    if (fault === 'no Kafka') before.isCutOff = true;
    if (fault === 'no API') before.isDropped = true;
    if (fault === 'stopped') await time.until(done(before.stop()), Infinity);
    if (chance.is(0.2)) before.skewMs += chance.pick([3_600_000, -3_600_000]);
    const from = time.now();
    await time.pass(chance.below(fault === 'stopped' ? 500 : 4_000));
    if (chance.is(0.2)) world.ledger.moveLeader(chance.below(600_000) - 300_000);
    const made = options(`p${k}`, folder);
    client = new SimClient(world, made);
    if (chance.is(0.1)) world.ledger.moveLeader(0);
    await time.pass(150_000);
    expect(client.error, `seed ${seed}, ${fault}`).toBeUndefined();
    if (fault === 'no Kafka') before.kill();
    expect(before.state, `seed ${seed}, ${fault}`).toBe('over');
    const own = world.arrivals.filter(
      (one) =>
        one.client === made.name &&
        (isShared ? one.endpoint !== 'login' : one.endpoint === 'orders'),
    );
    const times = own.map(({ at }) => at).filter((at) => at < from + 140_000);
    const gaps = times.slice(1).map((at, n) => at - times[n]!);
    took.push({
      fault,
      firstAfterMs: (times[0] ?? Infinity) - from,
      silenceMs: made.pauseMs === 0 ? Math.max(...gaps) : 0,
    });
    await time.pass(chance.below(20_000));
  }
  client.kill();
  const { arrivals } = world;
  const found = isShared
    ? overruns(arrivals.map((one) => ({ ...one, endpoint: one.endpoint === 'login' ? 'login' : 'all' })), 'all', quotaPerMinute) // prettier-ignore
    : ['orders', 'products'].flatMap((name) => overruns(arrivals, name, quotaPerMinute));
  return { found: [...found, ...overruns(arrivals, 'login', 10)], took };
}

function done(work: Promise<unknown>): () => boolean {
  let isDone = false;
  void work.then(() => (isDone = true));
  return () => isDone;
}

describe('takeovers of an account', () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    it(`never exceed the quota, seed ${seed}`, { timeout: 120_000 }, async () => {
      const { found, took } = await takeovers(seed, 100);
      expect(found.slice(0, 5)).toEqual([]);
      if (process.env.LEDGER_TELL) console.table(took);
    });
  }
});
