// Random changes by the clock, and random drift.

import type { Settings } from './options.ts';
import { Random } from './random.ts';
import type { RecordKey, Resource, JsonValue } from './resources.ts';
import type { Store } from './store.ts';
import { convertedField, newField } from './drift.ts';
import type { Faults } from './faults.ts';
import { isObject, RESOURCES, RULES } from './resources.ts';

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

/** Fields that a list may come by. */
const NEW_FIELDS: readonly (readonly [field: string, value: JsonValue])[] = [
  ['source_channel', 'web'],
  ['loyalty.since', '2026-01-01'],
  ['risk_score', 0.25],
  ['external_ids', ['ERP-1']],
];

/** Records that drift at once; the others follow as they are changed. */
const EXISTING = 5;
/** Records of a page that come twice. */
const REPEATED = 3;

/**
 * Lets something drift at random, by the seed: a new field, numbers that become texts, a record
 * without its key, a page with repeated records. What drifts again goes back first, so that no
 * more comes together than there are fields and lists.
 */
export class RandomDrift {
  readonly #store: Store;
  readonly #faults: Faults;
  readonly #random: Random;
  /** What ends that which is in force, by its name. */
  readonly #ends = new Map<string, () => void>();

  constructor(store: Store, faults: Faults, seed: number) {
    this.#store = store;
    this.#faults = faults;
    this.#random = new Random(seed, 0xd41);
  }

  /** One thing drifts, or goes back; none in an empty list. */
  next(): void {
    const resource = this.#random.pick(RESOURCES);
    const key = this.#someKey(resource);
    const kind = this.#random.below(4);
    if (key === undefined) return;
    if (kind === 0) this.#addField(resource);
    else if (kind === 1) this.#convertField(resource, key);
    else if (kind === 2) this.#loseKey(resource, key);
    else this.#repeat(resource);
  }

  #addField(resource: Resource): void {
    const [field, value] = this.#random.pick(NEW_FIELDS);
    const name = `${resource} ${field}`;
    if (this.#end(name)) return;
    const rule = newField(field, value);
    this.#ends.set(name, this.#store.drift(resource, rule, { existing: EXISTING }));
  }

  #convertField(resource: Resource, key: RecordKey): void {
    const numbers = this.#numbersOf(resource, key);
    if (numbers.length === 0) return;
    const field = this.#random.pick(numbers);
    const name = `${resource} ${field}`;
    if (this.#end(name)) return;
    const rule = convertedField(field, (value) =>
      typeof value === 'number' ? String(value) : value,
    );
    this.#ends.set(name, this.#store.drift(resource, rule, { existing: EXISTING }));
  }

  #loseKey(resource: Resource, key: RecordKey): void {
    const name = `${resource} key`;
    this.#end(name);
    // Not one that a test has made odd: it is to stay as it is.
    if (!this.#store.isChangeable(resource, key)) return;
    this.#ends.set(name, this.#store.loseKey(resource, key));
  }

  #repeat(endpoint: Resource): void {
    const name = `${endpoint} page`;
    this.#end(name); // in case nobody asked for a page meanwhile
    const fault = { kind: 'repeat', endpoint, records: REPEATED, times: 1 } as const;
    this.#ends.set(name, this.#faults.add(fault));
  }

  /** @returns whether there was anything to end. */
  #end(name: string): boolean {
    this.#ends.get(name)?.();
    return this.#ends.delete(name);
  }

  #someKey(resource: Resource): RecordKey | undefined {
    const table = this.#store.table(resource);
    const place = this.#random.below(table.size);
    const [id] = table.byKey.slice(place, place + 1);
    return id === undefined ? undefined : table.keyOf(id);
  }

  /** The fields of a record that hold a number, converted ones too, but for its key. */
  #numbersOf(resource: Resource, key: RecordKey): string[] {
    const record = this.#store.plain(resource, key);
    if (!isObject(record)) return [];
    const { keyField } = RULES[resource];
    return Object.keys(record).filter(
      (name) => name !== keyField && typeof record[name] === 'number',
    );
  }
}
