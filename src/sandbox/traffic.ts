import type { Settings } from './options.ts';
import type { RandomDrift } from './random-drift.ts';
import { Random } from './random.ts';
import type { RecordKey, Resource } from './resources.ts';
import type { Store } from './store.ts';

/** How often each list is changed, of a hundred changes. */
const SHARES: readonly (readonly [Resource, number])[] = [
  ['orders', 70],
  ['customers', 10],
  ['inventory', 10],
  ['wine-club-members', 6],
  ['products', 3],
  ['wine-clubs', 1],
];

const TICK_MS = 20;
/** After a pause of the process at most this many ms of changes are made up for. */
const CATCH_UP_MS = 2_000;

/** A day at the winery: seeded random changes, at a rate or on demand. */
export class Traffic {
  readonly #store: Store;
  readonly #random: Random;
  /** In epoch ms; what the rate is measured by. */
  readonly #clock: () => number;
  readonly #drift: RandomDrift;
  readonly #driftEvery: number;
  readonly #lead: number;
  #changes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param lead how much of its first change is due at once, so that accounts do not change in step. */
  constructor(store: Store, drift: RandomDrift, settings: Settings, lead: number) {
    this.#store = store;
    this.#lead = lead;
    this.#drift = drift;
    this.#driftEvery = settings.driftEvery;
    this.#random = new Random(settings.seed, 0x7a1c);
    this.#clock = settings.now;
  }

  /** Changes a second from now on; 0 stops. */
  setRate(perSecond: number): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (!(perSecond > 0)) return;
    let last = this.#clock();
    let owed = this.#lead;
    this.#timer = setInterval(() => {
      const now = this.#clock();
      owed += (Math.min(Math.max(now - last, 0), CATCH_UP_MS) / 1_000) * perSecond;
      last = now;
      const due = Math.floor(owed);
      owed -= due;
      this.changeSome(due);
    }, TICK_MS);
    this.#timer.unref();
  }

  changeSome(count: number): void {
    for (let k = 0; k < count; k++) {
      this.#changeOne();
      if (this.#driftEvery > 0 && ++this.#changes % this.#driftEvery === 0) this.#drift.next();
    }
  }

  #changeOne(): void {
    const resource = this.#pickList();
    const random = this.#random;
    const key = this.#pickRecord(resource);
    const lot = random.next();
    const fixed = resource === 'wine-clubs';
    if (key === undefined || (!fixed && lot < 0.15)) this.#store.create(resource);
    else if (!fixed && lot < 0.16) this.#store.remove(resource, key);
    else this.#store.alter(resource, key);
  }

  #pickList(): Resource {
    let lot = this.#random.below(100);
    for (const [resource, share] of SHARES) {
      if (lot < share) return resource;
      lot -= share;
    }
    return 'orders';
  }

  /** A record that can be changed, of orders more likely a recent one; none of an empty list. */
  #pickRecord(resource: Resource): RecordKey | undefined {
    for (let tries = 0; tries < 8; tries++) {
      const table = this.#store.table(resource);
      const age = resource === 'orders' ? this.#random.next() ** 2 : this.#random.next();
      const place = table.size - 1 - Math.floor(age * table.size);
      const [id] = table.byKey.slice(place, place + 1);
      if (id === undefined) return undefined;
      const key = table.keyOf(id);
      if (this.#store.isChangeable(resource, key)) return key;
    }
    return undefined;
  }
}
