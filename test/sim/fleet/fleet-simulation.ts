import { loadConfig } from '../../../src/config/load-config.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { AccountConfig } from '../../../src/config/accounts.ts';
import { describeError } from '../../../src/core/errors.ts';
import { Chance } from '../../support/chance.ts';
import { LOOKBACK_MS, PROOF_MS } from '../draw.ts';
import { SimTime } from '../sim-time.ts';
import { checkClaims } from './check-claims.ts';
import { checkDeclared } from './check-declared.ts';
import { checkHandovers, checkTaken } from './check-handovers.ts';
import { checkQuarantines, isQuarantined } from './check-quarantines.ts';
import { checkEven, checkLoads, restless } from './check-quiet.ts';
import type { Quiet } from './check-quiet.ts';
import { checkQuotas } from './check-quotas.ts';
import { RESOURCES } from '../../../src/sandbox/resources.ts';
import { drawFleet } from './fleet-draw.ts';
import type { FleetDraw } from './fleet-draw.ts';
import { TRAPS, FAULTS, victim } from './fleet-faults.ts';
import type { Fault } from './fleet-faults.ts';
import { FleetInstance, SimMachine } from './fleet-instance.ts';
import type { FleetWorld } from './fleet-instance.ts';
import { FleetWatch } from './fleet-watch.ts';
import { SimAccount } from './sim-account.ts';
import { SimData } from './sim-data.ts';
import { SimFleetTopic } from './sim-fleet-topic.ts';
import type { Said } from './sim-fleet-topic.ts';
import { SimGroup } from './sim-group.ts';

export interface FleetRun {
  /** What was promised and not kept; empty if all is well. */
  readonly violations: readonly string[];
  readonly draw: FleetDraw;
  /** How much there was to go wrong, and went wrong: numbers to be added up over the runs. */
  readonly sums: Readonly<Record<string, number>>;
  /** The longest that an account had no owner though there was one to take it, ms. */
  readonly longestMs: number;
}

const START = Date.parse('2026-06-01T12:00:00Z');
const LOOK_EVERY_MS = 500;
const BEGIN_MS = 30_000;
/** Between faults that come one by one: each is over by the next. */
const APART_MS = 45_000;
/** All is as it should be so long after the last fault, ms: a full quota may have been declared meanwhile. */
const CALM_MS = 120_000;
const LEAST_CALM_MS = 25_000;
const CHANGE_MS = 60_000;
const LEAST_CHANGE_MS = 15_000;
/** Accounts move for their weight when it has been uneven for so long, ms. */
const UNEVEN_MS = 600_000;
/** So much sooner or later may it be noticed, ms: two looks of 15 s, a word between them that is late, and a rebalance. */
const NOTICED_WITHIN_MS = 50_000;
const MOST_INSTANCES = 4;
const LOGINS_PER_MINUTE = 10;
/** Of an account whose records are looked at: all has to be read and proven in the calm. */
const RECORDS_QUOTA = 100;
const RECORDS_CALM_MS = 240_000;

const CONFIG = loadConfig({
  env: {
    API_BASE_URL: 'http://sim',
    API_KEY: 'key',
    KAFKA_BROKERS: 'sim:9092',
    SCHEMA_REGISTRY_URL: 'http://sim',
    TOPIC_PREFIX: 'sim',
    POLL_INTERVAL_MS: '5000',
    LOOKBACK_MS: String(LOOKBACK_MS),
    SWEEP_INTERVAL_MS: '10000',
    DELETE_LIMIT_PERCENT: '100',
    DELETE_PROOF_MS: String(PROOF_MS),
    PAGE_SIZE: '60',
    RESOURCES: 'orders',
  },
  cwd: '/nonexistent',
  needs: ['api', 'kafka', 'registry'],
});

/** One run of a fleet, all of it decided by the seed. */
export async function simulateFleet(
  seed: number,
  tell?: (line: string) => void,
): Promise<FleetRun> {
  const run = new FleetStory(seed, tell);
  await run.begin();
  await run.faults();
  await run.calm();
  await run.change();
  await run.weights();
  return run.verdict();
}

class FleetStory {
  readonly #chance: Chance;
  readonly #draw: FleetDraw;
  readonly #time = new SimTime(START);
  readonly #world: FleetWorld;
  readonly #watch = new FleetWatch();
  readonly #instances: FleetInstance[] = [];
  readonly #violations: string[] = [];
  #faults = 0;
  /** Accounts that moved for their weight alone. */
  #weighed = 0;
  /** Whether faults happen, and records change. */
  #isRough = false;
  /** What was uneven when all was well for the last time. */
  #uneven: readonly string[] = [];
  /** Whether accounts were unknown to some for a while: when they are known again, none moves back at once. */
  #hadFiles = false;

  constructor(seed: number, tell: ((line: string) => void) | undefined) {
    this.#chance = new Chance(seed);
    this.#draw = drawFleet(this.#chance);
    const { accounts, busy, quotaPerMinute, imagesMs, withRecords } = this.#draw;
    const time = this.#time;
    const all = Array.from({ length: accounts }, (_, k) => {
      const quota = {
        ...CONFIG.quota,
        perMinute: quotaPerMinute,
        loginsPerMinute: LOGINS_PER_MINUTE,
      };
      const account = `a${k + 1}`;
      const api = { ...CONFIG.api, credentials: { api_key: new Secret(`key of ${account}`) } };
      const config = { ...CONFIG, account, api, quota } as AccountConfig;
      if (k > 0 || !withRecords) return new SimAccount(config, k < busy, time);
      const limits = [RECORDS_QUOTA, LOGINS_PER_MINUTE] as const;
      const quotas = { ...quota, perMinute: RECORDS_QUOTA };
      const data = new SimData(...limits, this.#chance, time);
      return new SimAccount({ ...config, quota: quotas }, false, time, data);
    });
    this.#world = {
      ...{ time, chance: this.#chance, imagesMs },
      group: new SimGroup(time),
      topic: new SimFleetTopic(time),
      accounts: new Map(all.map((account) => [account.name, account])),
      told: [],
      trace: tell && ((line) => tell(`${((time.now() - START) / 1_000).toFixed(3)} ${line}`)),
    };
  }

  async begin(): Promise<void> {
    const { instances, isAtOnce } = this.#draw;
    for (let k = 0; k < instances; k++) {
      this.#start();
      if (!isAtOnce) await this.#pass(this.#chance.below(4_000));
    }
    this.#watch.disturbed(this.#time.now());
    await this.#pass(BEGIN_MS);
  }

  async faults(): Promise<void> {
    const { isStorm, faults } = this.#draw;
    this.#isRough = true;
    for (let k = 0; k < faults; k++) {
      this.#strike(this.#chance.pick(FAULTS));
      await this.#pass(isStorm ? 500 + this.#chance.below(9_000) : APART_MS);
    }
  }

  /** All is put right, and has to be well soon. */
  async calm(): Promise<void> {
    const { group, accounts } = this.#world;
    group.dies(undefined);
    const names = [...accounts.keys()];
    for (const instance of this.#running()) {
      instance.isDropped = false;
      instance.trap = undefined;
      if (instance.known.length < names.length) instance.setFiles(names);
    }
    if (this.#running().length === 0) this.#start();
    const isOver = () =>
      !group.isAway &&
      this.#running().every(({ isReachable, reachesGroup }) => isReachable && reachesGroup);
    while (!isOver()) await this.#pass(LOOK_EVERY_MS);
    this.#isRough = false;
    this.#disturbed('it is calm');
    const mostMs = this.#draw.withRecords ? RECORDS_CALM_MS : CALM_MS;
    await this.#settled(LEAST_CALM_MS, mostMs, 'in the calm');
    if (!this.#hadFiles) this.#violations.push(...this.#uneven);
  }

  /** An instance comes, or goes: no account moves that need not. */
  async change(): Promise<void> {
    if (this.#violations.length > 0) return;
    const wasEven = this.#uneven.length === 0;
    const before = this.#owners();
    const running = this.#running();
    const isMore = running.length < 2 || (running.length < MOST_INSTANCES && this.#chance.is(0.5));
    const changed = isMore ? this.#start() : this.#chance.pick(running);
    if (!isMore) changed.stop();
    await this.#settled(LEAST_CHANGE_MS, CHANGE_MS, isMore ? 'after one more' : 'after one less');
    this.#violations.push(...this.#uneven);
    if (!wasEven) return;
    const after = this.#owners();
    const moved = [...before].filter(([account, owner]) => after.get(account) !== owner);
    const needless = moved.filter(([account, owner]) =>
      isMore ? after.get(account)?.instance !== changed.name : owner?.instance !== changed.name,
    );
    for (const [account, owner] of needless)
      this.#violations.push(`${account} need not have left ${owner?.instance}`);
    const most = Math.ceil(before.size / (running.length + 1));
    if (isMore && moved.length > most)
      this.#violations.push(`${moved.length} accounts have moved, not ${most}`);
  }

  /** All accounts of one instance become heavy: some leave it ten minutes later, and none moves after that. */
  async weights(): Promise<void> {
    const { group, accounts } = this.#world;
    const quiet = this.#quiet();
    const running = this.#running();
    if (!this.#draw.weightsChange || this.#violations.length > 0 || running.length < 2) return;
    if (!quiet || quiet.quarantined.size > 0) return;
    const heavy = this.#chance.pick(running);
    this.#disturbed(`what ${heavy.name} runs becomes heavy`);
    const before = this.#owners();
    for (const { name, snapshots$, data } of accounts.values()) {
      // What a real task costs is for that to say.
      if (!data && before.get(name)?.instance === heavy.name) snapshots$.next(RESOURCES.length);
    }
    const { length } = group.stable;
    await this.#pass(UNEVEN_MS - NOTICED_WITHIN_MS);
    if (group.stable.length > length) this.#violations.push('shared out anew too soon');
    await this.#settled(2 * NOTICED_WITHIN_MS, CHANGE_MS + 2 * NOTICED_WITHIN_MS, 'by weight');
    this.#violations.push(...checkLoads({ ...quiet, instances: this.#running() }));
    const after = this.#owners();
    const moved = [...before].filter(([account, owner]) => after.get(account) !== owner);
    this.#weighed += moved.length;
    const takers = new Set(moved.map(([account]) => after.get(account)?.instance));
    for (const [account, owner] of moved) {
      if (owner?.instance !== heavy.name && !takers.has(owner?.instance))
        this.#violations.push(`${account} has left ${owner?.instance} for ${heavy.name}'s weight`);
    }
    await this.#pass(UNEVEN_MS + NOTICED_WITHIN_MS);
    for (const [account, owner] of this.#owners()) {
      if (after.get(account) !== owner) this.#violations.push(`${account} moves again`);
    }
    if (group.stable.length > length + 1) this.#violations.push('shared out anew again and again');
  }

  verdict(): FleetRun {
    const { accounts, group, told } = this.#world;
    const all = [...accounts.values()];
    const did = (what: string) => told.filter((each) => each.what === what).length;
    return {
      draw: this.#draw,
      longestMs: this.#watch.longestMs,
      violations: [
        ...this.#violations,
        ...this.#watch.violations,
        ...this.#instances.flatMap(({ name, error }) =>
          error === undefined ? [] : [`${name} ended with ${describeError(error)}`],
        ),
        ...all.flatMap(checkQuotas),
        ...all.flatMap(checkDeclared),
        ...all.flatMap(
          ({ name, data }) => data?.violations(!isQuarantined(this.#said(), name)) ?? [],
        ),
        ...checkHandovers(told, group.stable),
        ...checkClaims(told, all),
        ...checkTaken(told, group.stable, this.#said()),
        ...checkQuarantines(this.#said()),
      ],
      sums: {
        instances: this.#instances.length,
        faults: this.#faults,
        rebalances: group.rebalances,
        generations: group.stable.length,
        claims: did('claim'),
        asks: did('ask'),
        releases: did('release'),
        failed: did('failed'),
        weighed: this.#weighed,
        handovers: this.#instances.reduce((sum, { handovers }) => sum + handovers.length, 0),
        events: all.reduce(
          (sum, { data }) => sum + (data?.broker.read('sim.orders').length ?? 0),
          0,
        ),
        requests: all.reduce((sum, { arrived }) => sum + arrived.length, 0),
        seconds: (this.#time.now() - START) / 1_000,
      },
    };
  }

  #running(): FleetInstance[] {
    return this.#instances.filter(({ state }) => state === 'running');
  }

  #owners() {
    return new Map(
      [...this.#world.accounts].map(([name, account]) => [name, account.owner()] as const),
    );
  }

  #start(machine = new SimMachine()): FleetInstance {
    const { accounts } = this.#world;
    const name = `i${this.#instances.length + 1}`;
    const instance = new FleetInstance(name, this.#world, machine, [...accounts.keys()]);
    instance.onDeath = () => this.#disturbed(`${name} is dead`);
    this.#instances.push(instance);
    return instance;
  }

  #disturbed(what: string): void {
    this.#world.trace?.(`-- ${what}`);
    this.#watch.disturbed(this.#time.now());
  }

  /** Something begins, and ends so much later. */
  #for(ms: number, what: string, begin: () => void, end: () => void): void {
    begin();
    this.#disturbed(`${what} for ${ms} ms`);
    this.#time.scheduler.schedule(() => {
      end();
      this.#disturbed(`${what}: over`);
    }, ms);
  }

  #strike(fault: Fault): void {
    const { group, accounts } = this.#world;
    const chance = this.#chance;
    const one = victim(this.#running(), chance);
    this.#faults += 1;
    this.#world.trace?.(`-- ${fault}`);
    switch (fault) {
      case 'start':
        if (this.#running().length < MOST_INSTANCES) this.#start();
        return;
      case 'leader of a ledger moves':
        return chance
          .pick([...accounts.values()])
          .ledger.moveLeader(chance.below(600_000) - 300_000);
      case 'coordinator away':
        if (group.isAway) return;
        return this.#for(
          1_000 + chance.below(15_000),
          fault,
          () => group.leave(),
          () => group.come(),
        );
      case 'coordinator dies in a rebalance': {
        const awayMs = 1_000 + chance.below(8_000);
        group.dies(chance.pick(['preparing', 'completing'] as const), () =>
          this.#for(
            awayMs,
            fault,
            () => undefined,
            () => group.come(),
          ),
        );
        return;
      }
    }
    if (!one) return;
    switch (fault) {
      case 'stop':
        return one.stop();
      case 'kill':
        one.kill();
        return this.#replace(one);
      case 'killed at a step':
        one.trap = { at: chance.pick(TRAPS), spring: () => one.kill() };
        return;
      case 'paused at a step': {
        const ms = 1_000 + chance.below(40_000);
        one.trap = { at: chance.pick(TRAPS), spring: () => this.#pause(one, ms) };
        return;
      }
      case 'cut off at a step': {
        const ms = 1_000 + chance.below(40_000);
        one.trap = { at: chance.pick(TRAPS), spring: () => this.#cutOff(one, ms) };
        return;
      }
      case 'pause':
        return this.#pause(one, 500 + chance.below(8_000));
      case 'pause for long':
        return this.#pause(one, 8_000 + chance.below(40_000));
      case 'cut off from Kafka':
        return this.#cutOff(one, 1_000 + chance.below(chance.pick([5_000, 40_000])));
      case 'cut off from the coordinator': {
        const ms = 5_000 + chance.below(25_000);
        one.loseGroup(ms);
        this.#disturbed(`${one.name} is without coordinator`);
        this.#time.scheduler.schedule(() => this.#disturbed(`${one.name} has it again`), ms);
        return;
      }
      case 'cut off from the API':
        one.isDropped = true;
        this.#time.scheduler.schedule(() => (one.isDropped = false), chance.below(30_000));
        return;
      case 'files':
        return this.#changeFiles(one, 1);
      case 'rebalance storm':
        return this.#changeFiles(one, 4 + chance.below(6));
      case 'clock is set':
        one.machine.skewMs += chance.pick([3_600_000, -3_600_000]);
        return;
    }
  }

  #cutOff(one: FleetInstance, ms: number): void {
    one.cutOff(ms);
    this.#disturbed(`${one.name} cut off from Kafka`);
    this.#time.scheduler.schedule(() => this.#disturbed(`${one.name} reaches Kafka again`), ms);
  }

  #pause(one: FleetInstance, ms: number): void {
    one.pause(ms);
    this.#disturbed(`${one.name} stands still`);
    this.#time.scheduler.schedule(() => this.#disturbed(`${one.name} goes on`), ms);
  }

  /** Its supervisor starts another one, with its folder. */
  #replace(one: FleetInstance): void {
    if (this.#chance.is(0.4)) return;
    const start = () => void (this.#running().length < MOST_INSTANCES && this.#start(one.machine));
    this.#time.scheduler.schedule(start, this.#chance.below(12_000));
  }

  /** Files of accounts come and go on one instance, before others have them. */
  #changeFiles(one: FleetInstance, times: number): void {
    const chance = this.#chance;
    const all = [...this.#world.accounts.keys()];
    this.#hadFiles = true;
    const change = (left: number) => {
      if (one.state !== 'running') return;
      const gone = chance.is(0.6) ? [chance.pick(all)] : [];
      const changed = chance.is(0.3) ? chance.pick(all) : undefined;
      one.setFiles(
        all.filter((account) => !gone.includes(account)),
        changed,
      );
      if (left > 1)
        this.#time.scheduler.schedule(() => change(left - 1), 200 + chance.below(4_000));
      else this.#time.scheduler.schedule(() => one.state === 'running' && one.setFiles(all), 3_000);
    };
    change(times);
  }

  /** Until all is as it should be. */
  async #settled(leastMs: number, mostMs: number, when: string): Promise<void> {
    await this.#pass(leastMs);
    const until = this.#time.now() + mostMs - leastMs;
    while (this.#restless() !== undefined && this.#time.now() < until)
      await this.#pass(LOOK_EVERY_MS);
    const problem = this.#restless();
    if (problem !== undefined) this.#violations.push(`${problem} ${when}`);
    this.#uneven = problem === undefined ? checkEven(this.#quiet()!) : [];
  }

  #said(): readonly Said[] {
    return this.#world.topic.entries.map(({ said }) => said);
  }

  #restless(): string | undefined {
    const quiet = this.#quiet();
    return quiet ? restless(quiet) : 'the group is not stable';
  }

  #quiet(): Quiet | undefined {
    const { group, accounts } = this.#world;
    const generation = group.stable.at(-1);
    if (!generation || !group.isStable) return undefined;
    if (this.#instances.some(({ state }) => state === 'stopping')) return undefined;
    return {
      accounts: [...accounts.values()],
      quarantined: new Set(
        [...accounts.keys()].filter((account) => isQuarantined(this.#said(), account)),
      ),
      instances: this.#running(),
      ...{ generation, now: this.#time.now() },
    };
  }

  async #pass(ms: number): Promise<void> {
    const { group, accounts } = this.#world;
    const until = this.#time.now() + ms;
    while (this.#time.now() < until) {
      await this.#time.pass(Math.min(LOOK_EVERY_MS, until - this.#time.now()));
      const watched = {
        ...{ group, accounts: accounts.values(), instances: this.#instances },
        said: this.#said(),
      };
      this.#watch.look(this.#time.now(), watched);
      if (this.#isRough) this.#alter();
    }
  }

  /** Records change. */
  #alter(): void {
    for (const { data } of this.#world.accounts.values())
      for (let n = this.#chance.below(3); data && n > 0; n--) data.api.list.change();
  }
}
