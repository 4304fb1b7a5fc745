// The records of one account and all that happens to them: changes, late commits, drift, replicas, the log.

import { BoundedLog } from './arrivals.ts';
import { Drift } from './drift.ts';
import type { DriftOptions, DriftRule } from './drift.ts';
import type { Settings } from './options.ts';
import { advanceOrder } from './order-life.ts';
import { isOrder } from './order-record.ts';
import { patched, isObject, RULES } from './resources.ts';
import type { Patch, JsonObject, JsonValue, RecordKey, Resource } from './resources.ts';
import { Random } from './random.ts';
import { statusChanges } from './status-changes.ts';
import type { StatusChange } from './status-changes.ts';
import { Table } from './table.ts';
import { Trade, Winery } from './trade.ts';

/** A change as a client can see it. */
export interface Change {
  /** When it was there to be seen, in epoch ms of the sandbox's clock. */
  readonly at: number;
  readonly resource: Resource;
  readonly key: RecordKey;
  readonly kind: 'create' | 'update' | 'delete';
  /** Of orders, unless deleted: what changed in the status fields. */
  readonly status?: readonly StatusChange[];
}

const RESOLUTION_MS = { ms: 1, second: 1_000, minute: 60_000, day: 86_400_000 } as const;

/** All six lists, and every way to change them. A list is made when it is first asked for. */
export class Store {
  readonly #settings: Settings;
  readonly #tables = new Map<Resource, Table>();
  readonly #trade: Trade;
  readonly #winery: Winery;
  readonly #log: BoundedLog<Change>;
  readonly #random: Random;
  readonly #lots: Random;
  readonly #drift = new Drift();
  readonly #clock: () => number;
  readonly #resolutionMs: number;
  readonly #lateCommitMs: number;
  readonly #late = new LateCommits();
  /** The lists as the replica has them; empty where there is none. */
  readonly #replicas = new Map<Resource, Table>();
  readonly #replicaLagMs: number;
  /** Commits on their way to the replica. */
  readonly #lagging = new LateCommits();

  /**
   * @param clock the server's clock, in epoch ms.
   * @param trade what it shares with other stores; by default nothing.
   */
  constructor(
    settings: Settings,
    clock: () => number,
    trade = new Trade(settings.seed, settings.records),
  ) {
    const { seed, records } = settings;
    this.#settings = settings;
    this.#trade = trade;
    this.#clock = clock;
    this.#resolutionMs = RESOLUTION_MS[settings.updatedAtResolution];
    this.#lateCommitMs = settings.lateCommitMs;
    this.#replicaLagMs = settings.replicaLagMs;
    this.#log = new BoundedLog(settings.changeLogLimit);
    this.#random = new Random(seed, 0xc4a);
    this.#lots = new Random(seed, 0xd21f);
    this.#winery = new Winery(seed, records.customers, trade);
  }

  /** The list as it can be seen now. */
  table(resource: Resource): Table {
    this.settle();
    let table = this.#tables.get(resource);
    if (!table) {
      this.#tables.set(resource, (table = this.#make(resource)));
      if (this.#replicaLagMs > 0) this.#replicas.set(resource, this.#make(resource));
    }
    return table;
  }

  /** The list as the replica shows it now; the list itself where there is no replica. */
  replica(resource: Resource): Table {
    const table = this.table(resource);
    return this.#replicas.get(resource) ?? table;
  }

  /** Oldest first. */
  changes(): Change[] {
    this.settle();
    return this.#log.entries();
  }

  /** Makes visible what is due. */
  settle(): void {
    const now = this.#clock();
    for (const commit of this.#late.take(now)) this.#show(commit);
    for (const commit of this.#lagging.take(now)) apply(commit);
  }

  /** @returns the new record's key. */
  create(resource: Resource, partial: JsonObject = {}): RecordKey {
    const table = this.table(resource);
    const id = table.issue();
    const updatedAt = this.#now();
    const stamp = new Date(updatedAt).toISOString();
    const customer = this.#winery.customerOf(resource, id);
    const record = this.#trade.make(
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
    const text = JSON.stringify({ ...record, ...partial });
    this.#commit(table, id, this.#drift.serve(resource, id, text), updatedAt);
    return table.keyOf(id);
  }

  /**
   * Changes a record and sets its `updated_at`, unless the patch sets one itself. The record goes
   * on being known by its old key, whatever becomes of the field. The patch meets it without drift.
   *
   * @throws RangeError when there is no such record.
   */
  change(resource: Resource, key: RecordKey, patch: Patch): void {
    const { table, id, text } = this.#latest(resource, key);
    const record = JSON.parse(text) as JsonObject;
    const old = isObject(record) ? record.updated_at : undefined;
    const after = patched(record, patch);
    let updatedAt = this.#now();
    if (isObject(after) && table.rules.dated) {
      const own = after.updated_at !== old;
      const parsed = own ? Date.parse(JSON.stringify(after.updated_at ?? null).slice(1, -1)) : NaN;
      if (!own) after.updated_at = new Date(updatedAt).toISOString();
      if (!Number.isNaN(parsed)) updatedAt = parsed;
    }
    this.#commit(table, id, this.#drift.serve(resource, id, JSON.stringify(after)), updatedAt);
  }

  /** Something believable happens to the record. */
  alter(resource: Resource, key: RecordKey): void {
    const at = new Date(this.#clock()).toISOString();
    this.change(resource, key, (record) => this.#trade.alter(resource, record, at, this.#random));
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
   * given twice, or what is no object at all. Nothing in it is touched, nor drifts.
   *
   * @throws SyntaxError when it is no JSON. RangeError when there is no such record.
   */
  replaceText(resource: Resource, key: RecordKey, text: string): void {
    JSON.parse(text);
    const { table, id } = this.#latest(resource, key);
    this.#drift.forget(resource, id);
    this.#commit(table, id, text, this.#now());
  }

  /** @throws RangeError when there is no such record. */
  remove(resource: Resource, key: RecordKey): void {
    const { table, id } = this.#latest(resource, key);
    this.#drift.forget(resource, id);
    this.#commit(table, id, undefined, this.#now());
  }

  /** Records that are created or changed follow this rule from now on. @returns its end. */
  drift(resource: Resource, rule: DriftRule, options: DriftOptions = {}): () => void {
    const end = this.#drift.add(resource, rule);
    const table = this.table(resource);
    let left = options.existing ?? 0;
    const ids = left > 0 ? table.byKey.slice(0, table.size) : [];
    for (const id of this.#lots.shuffled(ids)) {
      if (!(left > 0)) break;
      const key = table.keyOf(id);
      if (!this.isChangeable(resource, key)) continue;
      if (!this.#drift.concerns(resource, this.#latest(resource, key).text)) continue;
      this.#rewrite(resource, key, options);
      left--;
    }
    return end;
  }

  /**
   * The record is served without its key from now on. @returns a function that heals it.
   *
   * @throws RangeError when there is no such record.
   */
  loseKey(resource: Resource, key: RecordKey, options: Pick<DriftOptions, 'touch'> = {}) {
    const { id } = this.#latest(resource, key);
    this.#drift.loseKey(resource, id, 1);
    this.#rewrite(resource, key, options);
    let lost = true;
    return (): void => {
      if (!lost) return;
      lost = false;
      this.#drift.loseKey(resource, id, -1);
      // Gone meanwhile, or replaced: then there is nothing to heal.
      if (this.#drift.plain(resource, id) !== undefined) this.#rewrite(resource, key, options);
    };
  }

  /** The newest version of a record without drift, parsed; undefined when there is none. */
  plain(resource: Resource, key: RecordKey): JsonValue | undefined {
    const table = this.table(resource);
    const text = this.#newestText(table, table.idOf(key));
    return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
  }

  /** Whether the record is there, is not about to be deleted, and has the shape it began with. */
  isChangeable(resource: Resource, key: RecordKey): boolean {
    const record = this.plain(resource, key);
    return record !== undefined && this.#trade.knows(resource, record);
  }

  #make(resource: Resource): Table {
    const { seed, historyEndsAt: endsAt, records } = this.#settings;
    const history = { seed, endsAt, resolutionMs: this.#resolutionMs };
    return new Table(resource, this.#winery, records[resource], history);
  }

  #now(): number {
    return Math.floor(this.#clock() / this.#resolutionMs) * this.#resolutionMs;
  }

  /** The newest version of a record without drift, visible or not. */
  #latest(resource: Resource, key: RecordKey): { table: Table; id: number; text: string } {
    const table = this.table(resource);
    const id = table.idOf(key);
    const text = this.#newestText(table, id);
    if (text === undefined) throw new RangeError(`${resource}: no record ${key}`);
    return { table, id, text };
  }

  #newestText(table: Table, id: number): string | undefined {
    const plain = this.#drift.plain(table.resource, id);
    if (plain !== undefined) return plain;
    const waiting = this.#late.newest(table, id);
    return waiting ? waiting.text : table.text(id);
  }

  /** The record is what it was, served as drift has it now. */
  #rewrite(resource: Resource, key: RecordKey, { touch = true }: DriftOptions): void {
    if (touch) return this.change(resource, key, (record) => record);
    const { table, id, text } = this.#latest(resource, key);
    const updatedAt = this.#late.newest(table, id)?.updatedAt ?? table.updatedAt(id);
    this.#commit(table, id, this.#drift.serve(resource, id, text), updatedAt);
  }

  #commit(table: Table, id: number, text: string | undefined, updatedAt: number): void {
    const visibleAt = this.#clock() + this.#lateCommitMs;
    const commit = { table, id, text, updatedAt, visibleAt };
    if (this.#lateCommitMs === 0) this.#show(commit);
    else this.#late.add(commit);
  }

  #show({ table, id, text, updatedAt, visibleAt }: Commit): void {
    const before = table.text(id);
    if (text === undefined && before === undefined) return;
    apply({ table, id, text, updatedAt });
    const replica = this.#replicas.get(table.resource);
    if (replica) {
      const then = visibleAt + this.#replicaLagMs;
      this.#lagging.add({ table: replica, id, text, updatedAt, visibleAt: then });
    }
    const kind = text === undefined ? 'delete' : before === undefined ? 'create' : 'update';
    const entry = { at: visibleAt, resource: table.resource, key: table.keyOf(id), kind } as const;
    if (table.resource !== 'orders' || text === undefined) return this.#log.push(entry);
    const parse = (json: string | undefined) => JSON.parse(json ?? 'null') as JsonValue;
    this.#log.push({ ...entry, status: statusChanges(parse(before), parse(text)) });
  }
}

function apply({ table, id, text, updatedAt }: Omit<Commit, 'visibleAt'>): void {
  if (text === undefined) table.remove(id);
  else table.put(id, text, updatedAt);
}

/** A version of a record on its way to be seen. */
interface Commit {
  readonly table: Table;
  readonly id: number;
  /** The record's JSON text as it is served; undefined when it is deleted. */
  readonly text: string | undefined;
  /** Epoch ms. */
  readonly updatedAt: number;
  /** Epoch ms. */
  readonly visibleAt: number;
}

/** Commits that can't be seen yet. */
class LateCommits {
  /** Oldest first. */
  readonly #waiting: Commit[] = [];
  readonly #newest = new Map<string, Commit>();

  add(commit: Commit): void {
    this.#waiting.push(commit);
    this.#newest.set(nameOf(commit.table, commit.id), commit);
  }

  /** The last one of a record, if one waits. */
  newest(table: Table, id: number): Commit | undefined {
    return this.#newest.get(nameOf(table, id));
  }

  /** Takes out those that are due, oldest first. @param now epoch ms. */
  take(now: number): Commit[] {
    const due = this.#waiting.findIndex(({ visibleAt }) => visibleAt > now);
    const commits = this.#waiting.splice(0, due < 0 ? this.#waiting.length : due);
    for (const commit of commits) {
      const name = nameOf(commit.table, commit.id);
      if (this.#newest.get(name) === commit) this.#newest.delete(name);
    }
    return commits;
  }
}

function nameOf(table: Table, id: number): string {
  return `${table.resource}/${id}`;
}
