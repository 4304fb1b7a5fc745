import { BoundedLog } from './bounded-log.ts';
import type { Settings } from './options.ts';
import { advanceOrder } from './order-life.ts';
import { isOrder } from './order-record.ts';
import { Random } from './random.ts';
import { isObject, RESOURCES, RULES } from './resources.ts';
import type { JsonObject, JsonValue, RecordKey, Resource } from './resources.ts';
import { statusChanges } from './status-changes.ts';
import type { StatusChange } from './status-changes.ts';
import { Table } from './table.ts';
import { Winery } from './winery.ts';

/** A change as a client can see it. */
export interface Change {
  /** When it was there to be seen, in epoch ms of the sandbox's clock. */
  readonly at: number;
  readonly resource: Resource;
  readonly key: RecordKey;
  readonly kind: 'create' | 'update' | 'delete';
  /** Of orders, unless deleted: what changed in the nine status fields. */
  readonly status?: readonly StatusChange[];
}

/** What becomes of a record: fields to set, or a function that alters it or returns another. */
export type Patch = JsonObject | ((record: JsonObject) => JsonValue | void);

interface Commit {
  readonly table: Table;
  readonly id: number;
  /** The record's JSON text; undefined when it is deleted. */
  readonly text: string | undefined;
  /** Epoch ms. */
  readonly updatedAt: number;
  /** Epoch ms. */
  readonly visibleAt: number;
}

const RESOLUTION_MS = { ms: 1, second: 1_000, minute: 60_000, day: 86_400_000 } as const;

/** All six lists, and every way to change them. */
export class Store {
  readonly #tables: ReadonlyMap<Resource, Table>;
  readonly #winery: Winery;
  readonly #log: BoundedLog<Change>;
  readonly #random: Random;
  readonly #clock: () => number;
  readonly #resolutionMs: number;
  readonly #lateCommitMs: number;
  /** Commits not visible yet, oldest first, and the newest of each record. */
  #waiting: Commit[] = [];
  readonly #newest = new Map<string, Commit>();

  /** @param clock the server's clock, in epoch ms. */
  constructor(settings: Settings, clock: () => number) {
    const { seed, historyEndsAt: endsAt, records } = settings;
    this.#clock = clock;
    this.#resolutionMs = RESOLUTION_MS[settings.updatedAtResolution];
    this.#lateCommitMs = settings.lateCommitMs;
    this.#log = new BoundedLog(settings.changeLogLimit);
    this.#random = new Random(seed, 0xc4a);
    this.#winery = new Winery(seed, records.customers);
    const history = { seed, endsAt, resolutionMs: this.#resolutionMs };
    this.#tables = new Map(
      RESOURCES.map((name) => [name, new Table(name, this.#winery, records[name], history)]),
    );
  }

  /** The list as it can be seen now. */
  table(resource: Resource): Table {
    this.settle();
    return this.#tables.get(resource)!;
  }

  /** Oldest first. */
  changes(): Change[] {
    this.settle();
    return this.#log.entries();
  }

  /** Makes visible what is due. */
  settle(): void {
    if (this.#waiting.length === 0) return;
    const now = this.#clock();
    const due = this.#waiting.findIndex(({ visibleAt }) => visibleAt > now);
    const commits = this.#waiting.splice(0, due < 0 ? this.#waiting.length : due);
    for (const commit of commits) {
      this.#show(commit);
      const name = nameOf(commit.table, commit.id);
      if (this.#newest.get(name) === commit) this.#newest.delete(name);
    }
  }

  /** @returns the new record's key. */
  create(resource: Resource, partial: JsonObject = {}): RecordKey {
    const table = this.table(resource);
    const id = table.issue();
    const updatedAt = this.#now();
    const stamp = new Date(updatedAt).toISOString();
    const customer = this.#winery.customerOf(resource, id);
    const record = this.#winery.make(
      resource,
      {
        number: table.numberOf(id),
        customer: RULES.customers.firstNumber + customer,
        at: Math.floor(this.#clock()),
        createdAt: stamp,
        updatedAt: stamp,
        buyer: this.#winery.buyerAt(customer),
      },
      id,
      this.#random,
    );
    this.#commit(table, id, JSON.stringify({ ...record, ...partial }), updatedAt);
    return table.keyOf(id);
  }

  /**
   * Changes a record and sets its `updated_at`, unless the patch sets one itself. The record goes
   * on being known by its old key, whatever becomes of the field.
   *
   * @throws RangeError when there is no such record.
   */
  change(resource: Resource, key: RecordKey, patch: Patch): void {
    const { table, id, text } = this.#latest(resource, key);
    const record = JSON.parse(text) as JsonObject;
    const old = isObject(record) ? record.updated_at : undefined;
    const after = typeof patch === 'function' ? (patch(record) ?? record) : { ...record, ...patch };
    let updatedAt = this.#now();
    if (isObject(after) && table.rules.dated) {
      const own = after.updated_at !== old;
      const parsed = own ? Date.parse(JSON.stringify(after.updated_at ?? null).slice(1, -1)) : NaN;
      if (!own) after.updated_at = new Date(updatedAt).toISOString();
      if (!Number.isNaN(parsed)) updatedAt = parsed;
    }
    this.#commit(table, id, JSON.stringify(after), updatedAt);
  }

  /** Something believable happens to the record. */
  alter(resource: Resource, key: RecordKey): void {
    const at = new Date(this.#clock()).toISOString();
    this.change(resource, key, (record) => this.#winery.alter(resource, record, at, this.#random));
  }

  /**
   * Takes an order one step on in its life.
   *
   * @returns what was done, or undefined when its life is over and nothing was changed.
   * @throws RangeError when there is no such order.
   */
  advance(orderNumber: number): string | undefined {
    const order = JSON.parse(this.#latest('orders', orderNumber).text) as JsonValue;
    if (!isOrder(order)) throw new RangeError(`orders: ${orderNumber} is no order any longer`);
    const at = new Date(this.#clock()).toISOString();
    const step = advanceOrder(order, at, this.#random);
    if (step !== undefined) this.change('orders', orderNumber, () => order);
    return step;
  }

  /**
   * Serves exactly this JSON text for the record: for numbers that JavaScript cannot hold, names
   * given twice, or what is no object at all. Nothing in it is touched.
   *
   * @throws SyntaxError when it is no JSON. RangeError when there is no such record.
   */
  replaceText(resource: Resource, key: RecordKey, text: string): void {
    JSON.parse(text);
    const { table, id } = this.#latest(resource, key);
    this.#commit(table, id, text, this.#now());
  }

  /** @throws RangeError when there is no such record. */
  remove(resource: Resource, key: RecordKey): void {
    const { table, id } = this.#latest(resource, key);
    this.#commit(table, id, undefined, this.#now());
  }

  /** Whether the record is there, is not about to be deleted, and has the shape it began with. */
  isChangeable(resource: Resource, key: RecordKey): boolean {
    const table = this.table(resource);
    const waiting = this.#newest.get(nameOf(table, table.idOf(key)));
    const text = waiting ? waiting.text : table.text(table.idOf(key));
    return text !== undefined && this.#winery.knows(resource, JSON.parse(text) as JsonValue);
  }

  #now(): number {
    return Math.floor(this.#clock() / this.#resolutionMs) * this.#resolutionMs;
  }

  /** The newest version of a record, visible or not. */
  #latest(resource: Resource, key: RecordKey): { table: Table; id: number; text: string } {
    const table = this.table(resource);
    const id = table.idOf(key);
    const waiting = this.#newest.get(nameOf(table, id));
    const text = waiting ? waiting.text : table.text(id);
    if (text === undefined) throw new RangeError(`${resource}: no record ${key}`);
    return { table, id, text };
  }

  #commit(table: Table, id: number, text: string | undefined, updatedAt: number): void {
    const visibleAt = this.#clock() + this.#lateCommitMs;
    const commit = { table, id, text, updatedAt, visibleAt };
    if (this.#lateCommitMs === 0) return this.#show(commit);
    this.#waiting.push(commit);
    this.#newest.set(nameOf(table, id), commit);
  }

  #show({ table, id, text, updatedAt, visibleAt }: Commit): void {
    const before = table.text(id);
    if (text === undefined && before === undefined) return;
    if (text === undefined) table.remove(id);
    else table.put(id, text, updatedAt);
    const kind = text === undefined ? 'delete' : before === undefined ? 'create' : 'update';
    const entry = { at: visibleAt, resource: table.resource, key: table.keyOf(id), kind } as const;
    if (table.resource !== 'orders' || text === undefined) return this.#log.push(entry);
    const parse = (json: string | undefined) => JSON.parse(json ?? 'null') as JsonValue;
    this.#log.push({ ...entry, status: statusChanges(parse(before), parse(text)) });
  }
}

function nameOf(table: Table, id: number): string {
  return `${table.resource}/${id}`;
}
