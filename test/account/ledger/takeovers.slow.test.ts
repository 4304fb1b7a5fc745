import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Resource } from '../../../src/config/config.ts';
import { Chance } from '../../support/chance.ts';
import { SimTime } from '../../sim/sim-time.ts';
import { overruns } from './overruns.ts';
import { SimClient } from './sim-client.ts';
import type { ClientOptions, ClientWorld } from './sim-client.ts';
import { SimLedger } from './sim-ledger.ts';

const SEEDS = Number(process.env.LEDGER_SEEDS ?? 20);
const FIRST_SEED = Number(process.env.LEDGER_SEED ?? 1);
const TAKEOVERS = 10;
const QUOTA = 100;
const LOGINS = 10;
/** In every 60 s that the promise speaks of. */
const MINUTE_MS = 60_000;
/** A successor waits no longer: of a process that was killed, and of one that was stopped. */
const FIRST_MS = { killed: 15_000, stopped: 3_000 };
const SILENCE_MS = 15_000;
/** Where another broker leads meanwhile, nobody knows how old the newest declaration is. */
const UNKNOWN_AGE_MS = 1_000;
const FAULTS = [
  'beside',
  'killed',
  'paused',
  'woken soon',
  'stopped',
  'no Kafka',
  'no API',
] as const;
type Fault = (typeof FAULTS)[number];
const LISTS: Resource[] = ['orders', 'products'];

interface Took {
  readonly fault: Fault;
  /** Whether another broker came to lead the ledger while it was taken over. */
  readonly isMoved: boolean;
  /** Whether all lanes ask as often as they may. */
  readonly isBusy: boolean;
  /** From the fault to the start of the next one, ms. */
  readonly startAfterMs: number;
  /** From the fault to the first request of the next one, ms. */
  readonly firstAfterMs: number;
  /** The longest time without one in the two minutes behind it, ms. */
  readonly silenceMs: number;
}

class Account {
  readonly world: ClientWorld;
  readonly #time = new SimTime(1_750_000_000_000);
  /** Whether the server counts all lists together. */
  readonly #isShared: boolean;
  /** What an instance is told; other settings than its predecessor's, after a change. */
  #quota = QUOTA;
  #scope: 'key' | 'endpoint';

  constructor(seed: number) {
    const chance = new Chance(seed);
    this.world = { time: this.#time, chance, ledger: new SimLedger(this.#time), arrivals: [] };
    this.#isShared = chance.is(0.3);
    this.#scope = this.#isShared ? 'key' : 'endpoint';
  }

  /** An instance; what it is not told is by chance. */
  start(name: string, folder: ClientOptions['folder'], pauseMs?: number): Started {
    const { chance } = this.world;
    const options: ClientOptions = {
      name,
      folder,
      config: {
        description: WINE,
        account: 'main',
        quota: {
          perMinute: this.#quota,
          loginsPerMinute: LOGINS,
          scope: this.#scope,
          firstReadPercent: 73,
        },
        resources: LISTS,
        poll: { intervalMs: undefined } as ClientOptions['config']['poll'],
      },
      skewMs: chance.pick([0, 300_000, -300_000]),
      pauseMs: pauseMs ?? chance.pick([0, 0, 0, 1_000, 5_000]),
    };
    return { client: new SimClient(this.world, options), options };
  }

  /** Settings that ask for less than is allowed, or no more: what was asked before counts all the same. */
  changeSettings(): void {
    if (this.world.chance.is(0.5)) this.#quota = this.#quota === QUOTA ? 60 : QUOTA;
    else if (!this.#isShared) this.#scope = this.#scope === 'key' ? 'endpoint' : 'key';
  }

  get isAsUsual(): boolean {
    return this.#quota === QUOTA && this.#isShared === (this.#scope === 'key');
  }

  /** When a client asked the list that is looked at, or any where they share the quota, ms. */
  timesOf(client: string): number[] {
    return this.world.arrivals
      .filter((one) => one.client === client)
      .filter(({ endpoint }) => (this.#isShared ? endpoint !== 'login' : endpoint === 'orders'))
      .map(({ at }) => at);
  }

  overruns(): string[] {
    const all = this.world.arrivals;
    const lists = this.#isShared
      ? overruns(
          all.filter(({ endpoint }) => endpoint !== 'login'),
          'all lists',
          QUOTA,
          MINUTE_MS,
        )
      : LISTS.flatMap((name) =>
          overruns(
            all.filter(({ endpoint }) => endpoint === name),
            name,
            QUOTA,
            MINUTE_MS,
          ),
        );
    return [
      ...lists,
      ...overruns(
        all.filter(({ endpoint }) => endpoint === 'login'),
        'login',
        LOGINS,
        MINUTE_MS,
      ),
    ];
  }
}

interface Started {
  readonly client: SimClient;
  readonly options: ClientOptions;
}

const folderOf = (): ClientOptions['folder'] => ({ starts: new Map(), writer: undefined });

/** Lets one account go through takeovers by chance. */
async function takeovers(account: Account, seed: number): Promise<Took[]> {
  const { time, chance, ledger } = account.world;
  const folders = [folderOf()];
  let { client } = account.start('p0', folders[0]!);
  await time.pass(80_000 + chance.below(40_000));
  const took: Took[] = [];
  for (let k = 1; k <= TAKEOVERS; k++) {
    const fault = chance.pick(FAULTS);
    const before = client;
    // One's own of a process that is over, or one of before that.
    const isSameFolder = (fault === 'killed' || fault === 'stopped') && chance.is(0.4);
    if (!isSameFolder) folders.push((chance.is(0.3) && folders.at(-2)) || folderOf());
    await strike(before, fault, chance, time);
    if (chance.is(0.2)) before.skewMs += chance.pick([3_600_000, -3_600_000]);
    const from = time.now();
    await time.pass(chance.below(fault === 'stopped' ? 500 : 4_000));
    const [isMovedBefore, isMovedMeanwhile] = [chance.is(0.2), chance.is(0.1)];
    if (isMovedBefore) ledger.moveLeader(chance.below(600_000) - 300_000);
    if (chance.is(0.1)) account.changeSettings();
    const startAfterMs = time.now() - from;
    const next = account.start(`p${k}`, folders.at(-1)!);
    ({ client } = next);
    if (isMovedMeanwhile) ledger.moveLeader(0);
    await time.pass(150_000);
    expect(client.error, `seed ${seed}, ${fault}`).toBeUndefined();
    if (fault === 'no Kafka') before.kill();
    expect(before.state, `seed ${seed}, ${fault}`).toBe('over');
    const times = account.timesOf(client.name).filter((at) => at < from + 140_000);
    const gaps = times.slice(1).map((at, n) => at - times[n]!);
    took.push({
      fault,
      isMoved: isMovedBefore || isMovedMeanwhile,
      isBusy: next.options.pauseMs === 0 && account.isAsUsual,
      startAfterMs,
      firstAfterMs: (times[0] ?? Infinity) - from,
      silenceMs: Math.max(...gaps),
    });
    await time.pass(chance.below(20_000));
  }
  client.kill();
  return took;
}

async function strike(client: SimClient, fault: Fault, chance: Chance, time: SimTime) {
  if (fault === 'killed') client.kill();
  if (fault === 'paused') client.pause(12_000 + chance.below(60_000));
  if (fault === 'woken soon') client.pause(1_000 + chance.below(9_000));
  if (fault === 'no Kafka') client.isCutOff = true;
  if (fault === 'no API') client.isDropped = true;
  if (fault === 'stopped') await time.until(done(client.stop()), Infinity);
}

function done(work: Promise<unknown>): () => boolean {
  let isDone = false;
  void work.then(() => (isDone = true));
  return () => isDone;
}

/** Takeovers after which a busy list was not asked for too long. */
function late(took: readonly Took[]): Took[] {
  return took.filter(({ fault, isMoved, isBusy, startAfterMs, firstAfterMs, silenceMs }) => {
    if (!isBusy) return false;
    const most = fault === 'stopped' ? FIRST_MS.stopped : FIRST_MS.killed;
    // What still runs goes on until it is taken over, and an age that is not known begins then.
    const isOver = fault === 'killed' || fault === 'stopped';
    const begin = isOver && !isMoved ? 0 : startAfterMs;
    const slack = isMoved ? UNKNOWN_AGE_MS : 0;
    return firstAfterMs - begin > most + slack || silenceMs > SILENCE_MS + slack;
  });
}

describe('takeovers of an account', () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    it(
      `never exceed the quota, nor wait for long, seed ${seed}`,
      { timeout: 120_000 },
      async () => {
        const account = new Account(seed);
        const took = await takeovers(account, seed);
        expect(account.overruns().slice(0, 5)).toEqual([]);
        expect(late(took)).toEqual([]);
      },
    );
  }

  it('use 97 % of the quota over ten clean handovers', { timeout: 120_000 }, async () => {
    const account = new Account(FIRST_SEED);
    const { time, chance, arrivals } = account.world;
    let { client } = account.start('p0', folderOf(), 0);
    await time.pass(3 * MINUTE_MS);
    const [begin, first] = [time.now(), arrivals.length];
    for (let k = 1; k <= TAKEOVERS; k++) {
      await time.until(done(client.stop()), Infinity);
      await time.pass(500 + chance.below(1_000)); // until the next process runs
      ({ client } = account.start(`p${k}`, folderOf(), 0));
      await time.pass(2 * MINUTE_MS);
    }
    client.kill();
    const asked = arrivals.slice(first).filter(({ endpoint }) => endpoint === 'orders').length;
    expect(account.overruns()).toEqual([]);
    expect(asked / ((QUOTA * (time.now() - begin)) / MINUTE_MS)).toBeGreaterThan(0.97);
  });
});
