// The records of one account, and their changes: late commits, drift, a replica, and the log of changes.

import { BoundedLog } from './arrivals.ts';
import { Drift, type DriftOptions, type DriftRule } from './drift.ts';
import type { SandboxSettings } from './options.ts';
import { advanceOrder } from './order-life.ts';
import { isOrder } from './order-record.ts';
import { patched, isObject, RULES } from './resources.ts';
import type { Patch, JsonObject, JsonValue, RecordKey, Resource } from './resources.ts';
import { Random } from './random.ts';
import { statusChanges, type StatusChange } from './status-changes.ts';
import { RecordTable } from './table.ts';
import { Trade, Winery } from './trade.ts';

/** A change of a record, logged when it became visible to clients. */
export interface Change {
  readonly at: number;
  readonly resource: Resource;
  readonly key: RecordKey;
  readonly kind: 'create' | 'update' | 'delete';
  /** Changes of an order's status fields; absent for records of other lists and for deletions. */
  readonly status?: readonly StatusChange[];
}

const RESOLUTION_MS = { ms: 1, second: 1_000, minute: 60_000, day: 86_400_000 } as const;

export class RecordStore {
  readonly #settings: SandboxSettings;
  readonly #tables = new Map<Resource, RecordTable>();
  readonly #trade: Trade;
  readonly #winery: Winery;
  readonly #log: BoundedLog<Change>;
  readonly #random: Random;
  readonly #lots: Random;
  readonly #drift = new Drift();
  readonly #clock: () => number;
  readonly #resolutionMs: number;
  readonly #late = new LateCommits();
  /** The lists as the lagging replica shows them; empty if the sandbox has no replica. */
  readonly #replicas = new Map<Resource, RecordTable>();
  readonly #lagging = new LateCommits();

  /**
   * @param clock The server's clock, in epoch ms.
   * @param trade Generated wines, people and record templates, which several stores may share. Default: generated from `settings`.
   */
  constructor(
    settings: SandboxSettings,
    clock: () => number,
    trade = new Trade(settings.seed, settings.records),
  ) {
    const { seed, records } = settings;
    this.#settings = settings;
    this.#trade = trade;
    this.#clock = clock;
    this.#resolutionMs = RESOLUTION_MS[settings.updatedAtResolution];
    this.#log = new BoundedLog(settings.changeLogLimit);
    this.#random = new Random(seed, 0xc4a);
    this.#lots = new Random(seed, 0xd21f);
    this.#winery = new Winery(seed, records.customers, trade);
  }

  /** Returns a list as clients see it now: with the delayed changes whose delay has passed. The first call generates the list. */
  table(resource: Resource): RecordTable {
    this.applyDueCommits();
    let table = this.#tables.get(resource);
    if (!table) {
      this.#tables.set(resource, (table = this.#make(resource)));
      if (this.#settings.replicaLagMs > 0) this.#replicas.set(resource, this.#make(resource));
    }
    return table;
  }

  /** Returns a list as the lagging replica shows it, or the list itself if the sandbox has no replica. */
  replica(resource: Resource): RecordTable {
    const table = this.table(resource);
    return this.#replicas.get(resource) ?? table;
  }

  changes(): Change[] {
    this.applyDueCommits();
    return this.#log.entries();
  }

  /** Makes delayed changes visible once their delay (`lateCommitMs` or `replicaLagMs`) has passed. */
  applyDueCommits(): void {
    const now = this.#settings.now();
    for (const commit of this.#late.take(now)) this.#show(commit);
    for (const commit of this.#lagging.take(now)) apply(commit);
  }

  /**
   * Creates a random record, with the fields of `partial` in place of generated ones. An `updated_at` among them is also the time by which
   * lists are sorted and windows are selected.
   *
   * @returns the record's key.
   */
  create(resource: Resource, partial: JsonObject = {}): RecordKey {
    const table = this.table(resource);
    const id = table.issue();
    const updatedAt = this.#now();
    const stamp = new Date(updatedAt).toISOString();
    const customer = this.#winery.customerOf(resource, id);
    const generated = this.#trade.make(
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
    const record = { ...generated, ...partial };
    const text = this.#drift.serve(resource, id, JSON.stringify(record));
    this.#commit(table, id, text, shownUpdatedAt(table, record) ?? updatedAt);
    return table.keyOf(id);
  }

  /**
   * Applies a patch to a record. The patch gets the record without drift (simulated changes of form). Also sets `updated_at` to the current
   * time, unless the patch changes that field or the list has no dates.
   *
   * @throws RangeError if there is no such record.
   */
  change(resource: Resource, key: RecordKey, patch: Patch): void {
    const { table, id, text } = this.#latest(resource, key);
    const record = JSON.parse(text) as JsonObject;
    const old = isObject(record) ? record.updated_at : undefined;
    const after = patched(record, patch);
    const updatedAt = this.#now();
    if (isObject(after) && table.rules.dated && after.updated_at === old) {
      after.updated_at = new Date(updatedAt).toISOString();
    }
    // If the patch changed the key field, the record is still identified by its old key.
    const served = this.#drift.serve(resource, id, JSON.stringify(after));
    this.#commit(table, id, served, shownUpdatedAt(table, after) ?? updatedAt);
  }

  alter(resource: Resource, key: RecordKey): void {
    const at = new Date(this.#clock()).toISOString();
    this.change(resource, key, (record) => this.#trade.alter(resource, record, at, this.#random));
  }

  /**
   * Advances an order by one step. Returns the name of the step, or undefined if the order is complete.
   *
   * @throws RangeError if there is no such order, or the order lacks the fields that the steps rely on.
   */
  advance(orderNumber: number): string | undefined {
    const order = JSON.parse(this.#latest('orders', orderNumber).text) as JsonValue;
    if (!isOrder(order))
      throw new RangeError(
        `advance of the sandbox: order ${orderNumber} was changed and lacks fields that its steps need. Advance another order`,
      );
    const at = new Date(this.#clock()).toISOString();
    const step = advanceOrder(order, at, this.#random);
    if (step !== undefined) this.change('orders', orderNumber, () => order);
    return step;
  }

  /**
   * Serves exactly this JSON text (any valid JSON) as the record, until the record's next change. Drift rules do not alter the text.
   *
   * @throws SyntaxError if the text is not JSON. RangeError if there is no such record.
   */
  replaceText(resource: Resource, key: RecordKey, text: string): void {
    JSON.parse(text);
    const { table, id } = this.#latest(resource, key);
    this.#drift.forget(resource, id);
    this.#commit(table, id, text, this.#now());
  }

  /**
   * Deletes a record.
   *
   * @throws RangeError if there is no such record.
   */
  remove(resource: Resource, key: RecordKey): void {
    const { table, id } = this.#latest(resource, key);
    this.#drift.forget(resource, id);
    this.#commit(table, id, undefined, this.#now());
  }

  /**
   * Adds a drift rule, which alters the form of a list's records before they are served. It applies to all records that are created or
   * changed from now on, and at once to some others: `options.existing` records, chosen at random.
   *
   * @returns a function that removes the rule.
   */
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
   * Serves the record without its key field.
   *
   * @returns a function that restores the key.
   * @throws RangeError if there is no such record.
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
      // If the record has been deleted or replaced meanwhile, there is nothing to restore.
      if (this.#drift.plain(resource, id) !== undefined) this.#rewrite(resource, key, options);
    };
  }

  /**
   * Returns the newest version of a record, parsed and without drift, even if responses do not show it yet. Undefined if the record does
   * not exist or has been deleted.
   */
  plain(resource: Resource, key: RecordKey): JsonValue | undefined {
    const table = this.table(resource);
    const text = this.#newestText(table, table.idOf(key));
    return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
  }

  /**
   * Whether the newest version of the record, visible or not, has the fields that random changes rely on. False if there is no such record.
   */
  isChangeable(resource: Resource, key: RecordKey): boolean {
    const record = this.plain(resource, key);
    return record !== undefined && this.#trade.isRecognized(resource, record);
  }

  #make(resource: Resource): RecordTable {
    const { seed, historyEndsAt: endsAt, records } = this.#settings;
    const history = { seed, endsAt, resolutionMs: this.#resolutionMs };
    return new RecordTable(resource, this.#winery, records[resource], history);
  }

  #now(): number {
    return Math.floor(this.#clock() / this.#resolutionMs) * this.#resolutionMs;
  }

  /**
   * Returns the newest version of a record as JSON text without drift, even if responses do not show it yet.
   *
   * @throws RangeError if there is no such record.
   */
  #latest(resource: Resource, key: RecordKey): { table: RecordTable; id: number; text: string } {
    const table = this.table(resource);
    const id = table.idOf(key);
    const text = this.#newestText(table, id);
    if (text === undefined) throw new RangeError(`the sandbox has no record ${key} in ${resource}`);
    return { table, id, text };
  }

  #newestText(table: RecordTable, id: number): string | undefined {
    const plain = this.#drift.plain(table.resource, id);
    if (plain !== undefined) return plain;
    const waiting = this.#late.newest(table, id);
    return waiting ? waiting.text : table.text(id);
  }

  /**
   * Serves the newest version of a record again, altered by the current drift rules and key removals. Sets `updated_at`, unless `touch` is
   * false.
   */
  #rewrite(resource: Resource, key: RecordKey, { touch = true }: DriftOptions): void {
    if (touch) return this.change(resource, key, (record) => record);
    const { table, id, text } = this.#latest(resource, key);
    const updatedAt = this.#late.newest(table, id)?.updatedAt ?? table.updatedAt(id);
    this.#commit(table, id, this.#drift.serve(resource, id, text), updatedAt);
  }

  #commit(table: RecordTable, id: number, text: string | undefined, updatedAt: number): void {
    const { lateCommitMs, now } = this.#settings;
    const visibleAt = this.#clock() + lateCommitMs;
    // Not by the server's clock: once `skewClock` had set it back, changes would stay invisible longer.
    const dueAt = now() + lateCommitMs;
    const commit = { table, id, text, updatedAt, visibleAt, dueAt };
    if (lateCommitMs === 0) this.#show(commit);
    else this.#late.add(commit);
  }

  #show(commit: PendingCommit): void {
    const { table, id, text, visibleAt, dueAt } = commit;
    const before = table.text(id);
    if (text === undefined && before === undefined) return;
    apply(commit);
    const replica = this.#replicas.get(table.resource);
    if (replica) {
      this.#lagging.add({ ...commit, table: replica, dueAt: dueAt + this.#settings.replicaLagMs });
    }
    const kind = text === undefined ? 'delete' : before === undefined ? 'create' : 'update';
    const entry = { at: visibleAt, resource: table.resource, key: table.keyOf(id), kind } as const;
    if (table.resource !== 'orders' || text === undefined) return this.#log.push(entry);
    const parse = (json: string | undefined) => JSON.parse(json ?? 'null') as JsonValue;
    this.#log.push({ ...entry, status: statusChanges(parse(before), parse(text)) });
  }
}

/** Returns the time in a record's `updated_at`, in epoch ms; undefined if it has none, or if the list has no dates. */
function shownUpdatedAt(table: RecordTable, record: JsonValue): number | undefined {
  if (!table.rules.dated || !isObject(record)) return undefined;
  const at = typeof record.updated_at === 'string' ? Date.parse(record.updated_at) : NaN;
  return Number.isNaN(at) ? undefined : at;
}

function apply({ table, id, text, updatedAt }: PendingCommit): void {
  if (text === undefined) table.remove(id);
  else table.put(id, text, updatedAt);
}

/** A version of a record that becomes visible at a later time. */
interface PendingCommit {
  readonly table: RecordTable;
  readonly id: number;
  /** JSON text that will be served; undefined for a deletion. */
  readonly text: string | undefined;
  readonly updatedAt: number;
  /** Time of the change in the log of changes: when it becomes visible, in epoch ms by the server's clock. */
  readonly visibleAt: number;
  /** When the change becomes visible, in epoch ms by a clock without the skew of the server's clock. */
  readonly dueAt: number;
}

class LateCommits {
  readonly #waiting: PendingCommit[] = [];
  readonly #newest = new Map<string, PendingCommit>();

  add(commit: PendingCommit): void {
    this.#waiting.push(commit);
    this.#newest.set(nameOf(commit.table, commit.id), commit);
  }

  /** Returns the newest of the changes to this record that the API does not show yet; undefined if it shows all of them. */
  newest(table: RecordTable, id: number): PendingCommit | undefined {
    return this.#newest.get(nameOf(table, id));
  }

  /** Removes and returns the changes whose delay has passed, oldest first. @param now Epoch ms, by the clock of `dueAt`. */
  take(now: number): PendingCommit[] {
    const due = this.#waiting.findIndex(({ dueAt }) => dueAt > now);
    const commits = this.#waiting.splice(0, due < 0 ? this.#waiting.length : due);
    for (const commit of commits) {
      const name = nameOf(commit.table, commit.id);
      if (this.#newest.get(name) === commit) this.#newest.delete(name);
    }
    return commits;
  }
}

function nameOf(table: RecordTable, id: number): string {
  return `${table.resource}/${id}`;
}
