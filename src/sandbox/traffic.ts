import type { SandboxSettings } from './options.ts';
import { Random } from './random.ts';
import type { RecordKey, Resource, JsonValue } from './resources.ts';
import type { RecordStore } from './store.ts';
import { convertedField, newField, type DriftRule } from './drift.ts';
import type { Faults } from './faults.ts';
import { isObject, RESOURCES, RULES } from './resources.ts';

const SHARES: readonly (readonly [Resource, number])[] = [
  ['orders', 70],
  ['customers', 10],
  ['inventory', 10],
  ['wine-club-members', 6],
  ['products', 3],
  ['wine-clubs', 1],
];

/** Interval of the timer that changes the sandbox's records, in ms. */
const TICK_MS = 20;
/**
 * Maximum time since the previous timer tick, in ms, for which a tick makes random changes. After a longer pause of the process, the
 * changes due in the rest of the pause are skipped. A larger value allows larger bursts of changes.
 */
const CATCH_UP_MS = 2_000;

/** Makes seeded random changes to an account's records, at a rate or on demand. */
export class Traffic {
  readonly #store: RecordStore;
  readonly #random: Random;
  /** Clock by which the rate of changes is measured, in epoch ms. */
  readonly #clock: () => number;
  readonly #drift: RandomDrift;
  readonly #driftEvery: number;
  readonly #lead: number;
  #changes = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param lead Fraction (0 to 1) of the interval between changes by which the first change comes early. It differs between accounts, so
   * that their records do not change at the same moments.
   */
  constructor(store: RecordStore, drift: RandomDrift, settings: SandboxSettings, lead: number) {
    this.#store = store;
    this.#lead = lead;
    this.#drift = drift;
    this.#driftEvery = settings.driftEvery;
    this.#random = new Random(settings.seed, 0x7a1c);
    this.#clock = settings.now;
  }

  /** Sets the number of random changes per second; 0 stops random changes. */
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
    if (resource === 'wine-clubs') {
      // Clubs are neither created nor removed.
      if (key !== undefined) this.#store.alter(resource, key);
    } else if (key === undefined || lot < 0.15) this.#store.create(resource);
    else if (lot < 0.16) this.#store.remove(resource, key);
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

  /**
   * Returns the key of a random record that can be changed. Recent orders are preferred. Returns undefined if the list is empty or eight
   * attempts find no such record.
   */
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

/** Fields that random drift can add to a list, each with its value. */
const NEW_FIELDS: readonly (readonly [field: string, value: JsonValue])[] = [
  ['source_channel', 'web'],
  ['loyalty.since', '2026-01-01'],
  ['risk_score', 0.25],
  ['external_ids', ['ERP-1']],
];

/**
 * Number of existing records, chosen at random, that a new drift rule alters at once. The rule alters each of the others at its next
 * change.
 */
const EXISTING = 5;
/** Number of records that appear twice on a page, when {@link RandomDrift} makes a page repeat records. */
const REPEATED = 3;

/**
 * Simulates drift: random changes of the form of the API's records, determined by a seed. A list gets a new field, numbers in a field
 * become text, a record is served without its key, or a page repeats records.
 */
export class RandomDrift {
  readonly #store: RecordStore;
  readonly #faults: Faults;
  readonly #random: Random;
  readonly #ends = new Map<string, () => void>();

  constructor(store: RecordStore, faults: Faults, seed: number) {
    this.#store = store;
    this.#faults = faults;
    this.#random = new Random(seed, 0xd41);
  }

  /** Starts or ends a random drift (a change of the form of records) of a random list. Does nothing if that list can't have the drift. */
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
    this.#toggle(resource, field, newField(field, value));
  }

  #convertField(resource: Resource, key: RecordKey): void {
    const numbers = this.#numbersOf(resource, key);
    if (numbers.length === 0) return;
    const field = this.#random.pick(numbers);
    const toText = (value: JsonValue) => (typeof value === 'number' ? String(value) : value);
    this.#toggle(resource, field, convertedField(field, toText));
  }

  /** Ends the drift of a field if it has one, else starts it with this rule. */
  #toggle(resource: Resource, field: string, rule: DriftRule): void {
    const name = `${resource} ${field}`;
    if (this.#end(name)) return;
    this.#ends.set(name, this.#store.drift(resource, rule, { existing: EXISTING }));
  }

  #loseKey(resource: Resource, key: RecordKey): void {
    const name = `${resource} key`;
    this.#end(name);
    // Leaves records alone that a test has given another shape.
    if (!this.#store.isChangeable(resource, key)) return;
    this.#ends.set(name, this.#store.loseKey(resource, key));
  }

  #repeat(endpoint: Resource): void {
    const name = `${endpoint} page`;
    this.#end(name); // in case no page was requested since the last time
    const fault = { kind: 'repeat', endpoint, records: REPEATED, times: 1 } as const;
    this.#ends.set(name, this.#faults.add(fault));
  }

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

  /** Returns the names of a record's number fields, except its key field. Examines the record as stored, without simulated drift. */
  #numbersOf(resource: Resource, key: RecordKey): string[] {
    const record = this.#store.plain(resource, key);
    if (!isObject(record)) return [];
    const { keyField } = RULES[resource];
    return Object.keys(record).filter(
      (name) => name !== keyField && typeof record[name] === 'number',
    );
  }
}
