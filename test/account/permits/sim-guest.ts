import { defer, repeat, Subscription } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { guestDeclarations } from '../../../src/account/permits/guest-declarations.ts';
import { GuestPermits } from '../../../src/account/permits/guest-permits.ts';
import { permitRequests, PermitSource } from '../../../src/account/permits/permit-source.ts';
import { quotas } from '../../../src/account/quotas.ts';
import { during } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import type { ClientOptions, ClientWorld } from '../ledger/sim-client.ts';
import type { SimSignals } from './sim-signals.ts';

export interface GuestOptions {
  readonly name: string;
  readonly config: ClientOptions['config'];
  readonly batches: Readonly<Record<string, number>>;
  /** By chance where it is left out. */
  readonly patienceMs?: number;
}

/** A request that is given up: later than that it has arrived. */
const MAX_WAY_MS = 900;

/** `peek`, and more: a guest that asks orders and the login as often as it is let. */
export class SimGuest {
  readonly name: string;
  error: unknown;
  isCutOff = false;
  readonly #world: ClientWorld;
  readonly #scheduler: SchedulerLike;
  readonly #permits: GuestPermits;
  readonly #subscription = new Subscription();
  readonly #settle: () => Promise<void>;
  #isOver = false;
  #heldUntil = -Infinity;

  constructor(world: ClientWorld, signals: SimSignals, options: GuestOptions) {
    const { time, chance, ledger } = world;
    const { name, config, batches, patienceMs = chance.pick([20_000, Infinity]) } = options;
    this.name = name;
    this.#world = world;
    const scheduler = time.timersOf(() => (this.#isOver ? Infinity : this.#heldUntil));
    this.#scheduler = scheduler;
    const ways = { step: () => this.#step(), isCutOff: () => this.isCutOff };
    const wallNow = () => time.now();
    const log = ledger.guest(name, ways, () => time.now());
    const declarations = guestDeclarations({ log, instance: name, scheduler, wallNow });
    const asking = { topic: signals.of(ways), account: 'main', instance: name, scheduler, wallNow };
    const source = new PermitSource({
      ...{
        requestPermits: permitRequests(asking),
        declarations,
        account: 'main',
        patienceMs,
        kafkaPatienceMs: 5_000,
      },
      ...{ scheduler, wallNow, random: chance.next },
      onUndeclared: (error) => (this.error = error),
    });
    const permits = new GuestPermits({
      batchSizes: batches,
      acquireBatch: (demands) => source.acquire(demands),
      scheduler,
      wallNow,
    });
    this.#permits = permits;
    this.#settle = () => declarations.declareFinal(permits.demands());
    this.#subscription.add(
      permits.batches$.subscribe({ error: (error: unknown) => (this.error = error) }),
    );
    const quota = quotas({ config, scheduler, ledger: permits });
    const ask = (endpoint: string, limit: Limit, pauseMs: number) => {
      const work = defer(() => this.#ask(endpoint));
      this.#subscription.add(
        defer(() => during(limit, work))
          .pipe(repeat({ delay: () => defer(() => time.sleep(pauseMs)) }))
          .subscribe(),
      );
    };
    ask('login', quota.login, 5_000);
    ask('orders', quota.lanes('orders', false).poll, 0);
    ask('orders', quota.lanes('orders', false).poll, 100);
  }

  kill(): void {
    this.#isOver = true;
    this.#subscription.unsubscribe();
    this.#permits.close();
  }

  pause(ms: number): void {
    this.#heldUntil = this.#scheduler.now() + ms;
  }

  async stop(): Promise<void> {
    this.#subscription.unsubscribe();
    this.#permits.close();
    await this.#settle();
    this.#isOver = true;
  }

  async #ask(endpoint: string): Promise<void> {
    const { time, chance, arrivals } = this.#world;
    await time.sleep(chance.is(0.05) ? chance.below(15_000) : chance.below(20));
    await this.#awake();
    if (this.#isOver || !this.#permits.isBatchValid()) return;
    const way = chance.is(0.05) ? chance.below(MAX_WAY_MS) : 5 + chance.below(60);
    await time.sleep(way);
    arrivals.push({ at: time.now(), endpoint, client: this.name });
    await time.sleep(5 + chance.below(100));
    await this.#awake();
  }

  async #awake(): Promise<void> {
    const { time } = this.#world;
    while (this.#heldUntil > time.now()) await time.sleep(this.#heldUntil - time.now());
    if (this.#isOver) await new Promise(() => undefined);
  }

  async #step(): Promise<void> {
    const { time, chance } = this.#world;
    await time.sleep(1 + chance.below(chance.is(0.05) ? 800 : 12));
    await this.#awake();
  }
}
