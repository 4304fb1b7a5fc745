import { defer, repeat, Subscription } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Config } from '../../../src/config/config.ts';
import { openLedger } from '../../../src/account/ledger/ledger.ts';
import type { Ledger } from '../../../src/account/ledger/ledger.ts';
import { quotas } from '../../../src/account/quotas.ts';
import type { Quotas } from '../../../src/account/quotas.ts';
import { during } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import { startsIn, writerIn } from '../../sim/sim-store.ts';
import type { SimFolder } from '../../sim/sim-store.ts';
import type { Chance } from '../../support/chance.ts';
import type { SimTime } from '../../sim/sim-time.ts';
import type { SimLedger } from './sim-ledger.ts';

/** What arrives at the API. */
export interface Arrival {
  readonly at: number;
  readonly endpoint: string;
  readonly client: string;
}

export interface ClientWorld {
  readonly time: SimTime;
  readonly chance: Chance;
  readonly ledger: SimLedger;
  readonly arrivals: Arrival[];
  /** Told of each process that may ask now, with what gives permits. */
  readonly onBegun?: (begun: Begun) => void;
}

/** A process that runs the account. */
export interface Begun {
  readonly client: SimClient;
  readonly ledger: Ledger;
  readonly quota: Quotas;
  readonly scheduler: SchedulerLike;
  /** Resolves when it goes on; never where it is dead. */
  readonly awake: () => Promise<void>;
}

export interface ClientOptions {
  readonly name: string;
  readonly config: Pick<Config, 'description' | 'quota' | 'account' | 'poll' | 'resources'>;
  /** Its own, or its predecessor's. */
  readonly folder: Pick<SimFolder, 'starts' | 'writer'>;
  /** How far its machine's clock is ahead, ms. */
  readonly skewMs: number;
  /** How busy: pauses between two requests of a lane, ms. */
  readonly pauseMs: number;
}

/** A request that is given up: later than that it has arrived. */
const MAX_WAY_MS = 900;

/** A process that asks as often as it may, with the quotas and the ledger as they are. */
export class SimClient {
  readonly name: string;
  readonly startedAt: number;
  skewMs: number;
  state: 'running' | 'over' = 'running';
  isCutOff = false;
  /** Of requests and answers: dropped by what stands between. */
  isDropped = false;
  error: unknown;
  readonly #world: ClientWorld;
  readonly #options: ClientOptions;
  readonly #subscription = new Subscription();
  readonly #scheduler: SchedulerLike;
  readonly #ledger: Ledger;
  readonly #quota: Quotas;
  #heldUntil = -Infinity;

  constructor(world: ClientWorld, options: ClientOptions) {
    const { time, ledger } = world;
    const { name, config, folder, skewMs } = options;
    this.name = name;
    this.skewMs = skewMs;
    this.startedAt = time.now();
    this.#world = world;
    this.#options = options;
    const scheduler = time.timersOf(() => (this.state === 'over' ? Infinity : this.#heldUntil));
    this.#scheduler = scheduler;
    this.#ledger = openLedger({
      instance: name,
      scheduler,
      wallNow: () => time.now() + this.skewMs,
    });
    this.#quota = quotas({
      config,
      scheduler,
      storedStartsOf: startsIn(folder),
      ledger: this.#ledger,
      instance: name,
      writer: writerIn(folder),
    });
    const log = ledger.of({ step: () => this.#step(), isCutOff: () => this.isCutOff }, () =>
      time.now(),
    );
    this.#subscription.add(
      this.#ledger.failed$.subscribe({ error: (error: unknown) => this.#fail(error) }),
    );
    this.#begin(log).catch((error: unknown) => this.#fail(error));
  }

  /** Until it is over. */
  add(work: Subscription): void {
    this.#subscription.add(work);
  }

  /** SIGKILL. */
  kill(): void {
    this.state = 'over';
    this.#subscription.unsubscribe();
  }

  /** SIGSTOP, and SIGCONT so much later. */
  pause(ms: number): void {
    this.#heldUntil = this.#world.time.now() + ms;
  }

  /** SIGTERM; resolves when it has ended. */
  async stop(): Promise<void> {
    this.#subscription.unsubscribe();
    await this.#ledger.declareFinal();
    this.state = 'over';
  }

  async #begin(log: ReturnType<SimLedger['of']>): Promise<void> {
    const { config, pauseMs } = this.#options;
    const inherited = await this.#ledger.claim(log);
    this.#quota.inherit(inherited);
    this.#ledger.activate(inherited);
    this.#world.onBegun?.({
      ...{ client: this, ledger: this.#ledger, quota: this.#quota, scheduler: this.#scheduler },
      awake: () => this.#awake(),
    });
    const ask = (endpoint: string, limit: Limit, parallel: number, pause: number) => {
      for (let k = 0; k < parallel; k++) {
        const work = defer(() => this.#ask(endpoint));
        this.#subscription.add(
          defer(() => during(limit, work))
            .pipe(repeat({ delay: () => defer(() => this.#world.time.sleep(pause)) }))
            .subscribe(),
        );
      }
    };
    for (const resource of config.resources) {
      const lanes = this.#quota.lanes(resource, true);
      ask(resource, lanes.poll, 1, Math.max(pauseMs, lanes.pollSpacingMs('first-read')));
      ask(resource, lanes.initialSnapshot, 2, pauseMs);
      ask(resource, lanes.sweep, 1, pauseMs);
    }
    ask('login', this.#quota.login, 1, 20_000 + pauseMs);
  }

  /** Resolves when it was answered or given up. */
  async #ask(endpoint: string): Promise<void> {
    const { time, chance, arrivals } = this.#world;
    // A connection is made, at times for long.
    await time.sleep(chance.is(0.02) ? chance.below(8_000) : chance.below(20));
    await this.#awake();
    if (this.state === 'over' || !this.#ledger.isLeaseValid()) return;
    const way = chance.is(0.05) ? chance.below(MAX_WAY_MS) : 5 + chance.below(60);
    const isLost = this.isDropped;
    const arrived = time.sleep(way).then(() => {
      if (!isLost) arrivals.push({ at: time.now(), endpoint, client: this.name });
    });
    await arrived;
    await time.sleep(isLost ? 2_000 : 5 + chance.below(100));
    await this.#awake();
  }

  async #awake(): Promise<void> {
    const { time } = this.#world;
    while (this.#heldUntil > time.now()) await time.sleep(this.#heldUntil - time.now());
    if (this.state === 'over') await new Promise(() => undefined);
  }

  async #step(): Promise<void> {
    const { time, chance } = this.#world;
    await time.sleep(1 + chance.below(chance.is(0.05) ? 800 : 12));
    await this.#awake();
  }

  #fail(error: unknown): void {
    this.error = error;
    this.kill();
  }
}
