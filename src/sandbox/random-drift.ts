import { convertedField, newField } from './drift.ts';
import type { Faults } from './faults.ts';
import { Random } from './random.ts';
import { isObject, RESOURCES, RULES } from './resources.ts';
import type { JsonValue, RecordKey, Resource } from './resources.ts';
import type { Store } from './store.ts';

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
