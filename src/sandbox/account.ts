// The accounts of a sandbox: the records of each, its quotas and faults, controls, and the truth about it.

import { randomUUID } from 'node:crypto';
import { Api, Hidden } from './api.ts';
import { Arrivals } from './arrivals.ts';
import { convertedField, newField } from './drift.ts';
import type { DriftOptions } from './drift.ts';
import { Faults } from './faults.ts';
import type { FaultSpec } from './faults.ts';
import type { Settings } from './options.ts';
import type { Patch, JsonObject, JsonValue, RecordKey, Resource, Endpoint } from './resources.ts';
import { RandomDrift, Traffic } from './traffic.ts';
import { setStatus } from './status-changes.ts';
import { Store } from './store.ts';
import { Tokens, accountIn } from './tokens.ts';
import { mix } from './random.ts';
import { Trade } from './trade.ts';
import type { Arrival } from './arrivals.ts';
import { ENDPOINTS } from './resources.ts';
import type { Change } from './store.ts';

/** One account of a sandbox: the truth about it, and controls. Nothing here concerns another one. */
export interface SandboxAccount {
  /** `winery-1`, with zeros before it where there are more than nine accounts: `winery-01`. */
  readonly name: string;
  /** The key that its login accepts. */
  readonly apiKey: string;
  readonly truth: Truth;

  /**
   * Changes a record: sets fields, or lets a function alter it or return what it shall be. Sets
   * `updated_at` unless the patch does. The record keeps being known by its old key here. The patch
   * meets it as it would be without drift.
   * @throws RangeError when there is no such record.
   */
  change(resource: Resource, key: RecordKey, patch: Patch): void;
  /**
   * Sets a status field of an order: `payment_status`, `club_package_info.package_status`,
   * `fulfillment_info.status` (of the first), `fulfillment_info[F-100001-2].status`,
   * `order_edit[2026-01-01T00:00:00.000Z].status`.
   * @throws RangeError when there is no such order or no such place in it.
   */
  setStatus(orderNumber: number, field: string, value: string | null): void;
  /**
   * Takes an order one step on in its life: paid, packed, shipped, delivered.
   * @returns what was done, or undefined when its life is over and nothing was changed.
   * @throws RangeError when there is no such order.
   */
  advance(orderNumber: number): string | undefined;
  /** Makes a believable record, with these fields instead of its own. @returns its key. */
  create(resource: Resource, partial?: JsonObject): RecordKey;
  /** @throws RangeError when there is no such record. */
  remove(resource: Resource, key: RecordKey): void;
  /**
   * Serves exactly this JSON text for a record: numbers that JavaScript cannot hold, names given
   * twice, no object at all. `updated_at` in it is not touched, and nothing in it drifts until the
   * record is changed.
   * @throws SyntaxError when it is no JSON. RangeError when there is no such record.
   */
  replaceText(resource: Resource, key: RecordKey, text: string): void;
  /** Makes so many seeded random changes now, in all lists that have records. */
  changeSome(count: number): void;
  /** Random changes per second from now on; 0 stops them. */
  setRate(changesPerSecond: number): void;
  /**
   * A new field: records that are created or changed from now on carry it, unless they have it
   * anyway, and so many of those that are there get it at once.
   *
   * @param field its name, a path with dots (`loyalty.since`) or a JSON Pointer (`/loyalty/since`).
   * Objects on the way are made; a list means each of its elements, or the one numbered.
   * @returns a function that ends it: records lose the field when they are next changed. A patch
   * of `change` meets them without it all along.
   * @throws RangeError when a name in the path is empty.
   */
  addField(resource: Resource, field: string, value: JsonValue, options?: DriftOptions): () => void;
  /**
   * A field of another type: as {@link addField}, but records that have the field show it converted
   * (`String` makes texts of numbers). Null stays null. Random changes and `advance` go on as if
   * nothing had happened; `change` meets and sets the value before it is converted.
   */
  convertField(
    resource: Resource,
    field: string,
    convert: (value: JsonValue) => JsonValue,
    options?: DriftOptions,
  ): () => void;
  /**
   * Serves a record without its key field until it heals, whatever changes in it. It keeps its
   * place in the list, and both `orderNumber` and the truth know it by its old key.
   *
   * @param options `touch`: whether losing and healing set `updated_at`. Default true.
   * @returns a function that heals it.
   * @throws RangeError when there is no such record.
   */
  loseKey(resource: Resource, key: RecordKey, options?: Pick<DriftOptions, 'touch'>): () => void;
  /**
   * A list hides a share of its records, new ones too: pages, totals and `orderNumber` are as if
   * they were gone, the truth still has them. Which ones their keys and the seed decide, so that a
   * larger share hides those of a smaller one and more; of few records the share is about right.
   *
   * @param share from 0 to 1.
   * @returns a function that shows them again.
   * @throws RangeError when there is no such share.
   */
  hide(resource: Resource, share: number): () => void;
  /** Makes requests go wrong. @returns a function that lifts the fault. */
  fault(spec: FaultSpec): () => void;
  /** No token given out until now is good any longer. */
  revokeTokens(): void;
}

/** An account as the server meets it. */
export interface Account {
  readonly api: Api;
  readonly arrivals: Arrivals;
  readonly faults: Faults;
  readonly controls: SandboxAccount;
}

/**
 * Makes an account. Its records are not made yet, so one that nobody asks for costs next to nothing.
 *
 * @param settings its own: its seed, its key.
 * @param trade what it shares with other accounts.
 * @param clock the server's clock, in epoch ms.
 */
function makeAccount(name: string, settings: Settings, trade: Trade, clock: () => number): Account {
  const { seed, apiKey } = settings;
  const store = new Store(settings, clock, trade);
  const tokens = new Tokens(name, settings, clock);
  const arrivals = new Arrivals(settings);
  const faults = new Faults(seed);
  for (const spec of settings.faults) faults.add(spec);
  const drift = new RandomDrift(store, faults, seed);
  const traffic = new Traffic(store, drift, settings, trade.apart(seed));
  const hidden = new Hidden(settings, clock);
  const controls: SandboxAccount = {
    name,
    apiKey,
    truth: truthOf(store, arrivals, settings.readings.rateLimited.status),
    change: (resource, key, patch) => store.change(resource, key, patch),
    setStatus: (orderNumber, field, value) =>
      store.change('orders', orderNumber, (order) => setStatus(order, field, value)),
    advance: (orderNumber) => store.advance(orderNumber),
    create: (resource, partial) => store.create(resource, partial),
    remove: (resource, key) => store.remove(resource, key),
    replaceText: (resource, key, text) => store.replaceText(resource, key, text),
    changeSome: (count) => traffic.changeSome(count),
    setRate: (changesPerSecond) => traffic.setRate(changesPerSecond),
    addField: (resource, field, value, options) =>
      store.drift(resource, newField(field, value), options),
    convertField: (resource, field, convert, options) =>
      store.drift(resource, convertedField(field, convert), options),
    loseKey: (resource, key, options) => store.loseKey(resource, key, options),
    hide: (resource, share) => hidden.add(resource, share),
    fault: (spec) => faults.add(spec),
    revokeTokens: () => tokens.revoke(),
  };
  return { api: new Api(settings, store, tokens, hidden, clock), arrivals, faults, controls };
}

/** The accounts behind one port, and whose a request is. */
export class Accounts {
  readonly first: Account;
  /** In order of their names. */
  readonly all: readonly Account[];
  /** Answers what names no account, so that it uses up nobody's quota; a sole account does so itself. */
  readonly nobody: Account;
  readonly #byName: ReadonlyMap<string, Account>;
  readonly #byKey: ReadonlyMap<unknown, Account>;

  /** @param clock the server's clock, in epoch ms. */
  constructor(settings: Settings, clock: () => number) {
    const { accounts, seed, apiKey, records } = settings;
    const trade = new Trade(seed, records);
    const digits = String(accounts).length;
    const nameOf = (number: number) => `winery-${String(number).padStart(digits, '0')}`;
    this.first = makeAccount(nameOf(1), settings, trade, clock);
    this.all = Array.from({ length: accounts }, (_, k) => {
      if (k === 0) return this.first;
      const own = { ...settings, seed: mix(seed, k), apiKey: `${apiKey}-${k + 1}` };
      return makeAccount(nameOf(k + 1), own, trade, clock);
    });
    // A seed that no account has, so that no token is good for it: one of another start may come.
    const none = { ...settings, seed: mix(seed, -1), apiKey: randomUUID() };
    this.nobody = accounts === 1 ? this.first : makeAccount('nobody', none, trade, clock);
    this.#byName = new Map(this.all.map((account) => [account.controls.name, account]));
    this.#byKey = new Map(this.all.map((account) => [account.controls.apiKey, account]));
  }

  named(name: string): Account | undefined {
    return this.#byName.get(name);
  }

  /** Whose login this is. */
  ofKey(apiKey: unknown): Account {
    return this.#byKey.get(apiKey) ?? this.nobody;
  }

  /** Whose list is asked for: the token only claims it, the account checks it. */
  ofToken(token: string | undefined): Account {
    return this.#byName.get((token && accountIn(token)) ?? '') ?? this.nobody;
  }
}

/**
 * What is so: what a correct client must have found out in the end. Drift is in it, as it is served;
 * faults are not, nor is what a list hides.
 */
export interface Truth {
  /** Records as they are served, parsed, in order of their keys; the list may change meanwhile. */
  records(resource: Resource): IterableIterator<JsonValue>;
  /** Keys of the records, in their order. */
  keys(resource: Resource): IterableIterator<RecordKey>;
  /** A record as it is served, parsed; undefined when there is none. */
  get(resource: Resource, key: RecordKey): JsonValue | undefined;
  /** The same as JSON text, byte for byte. */
  text(resource: Resource, key: RecordKey): string | undefined;
  /** How many records there are. */
  count(resource: Resource): number;
  /** The newest changes (`changeLogLimit`), oldest first. */
  readonly changes: readonly Change[];
  /** The newest requests to an endpoint (`requestLogLimit`), oldest first, refused ones included. */
  requests(endpoint: Endpoint): readonly Readonly<Arrival>[];
  /** Most of those within any `[t, t + windowMs)`. */
  mostInAnyWindow(endpoint: Endpoint, windowMs: number): number;
  /** How many of those were over the quota; of all endpoints unless one is named. */
  refused(endpoint?: Endpoint): number;
}

/**
 * The truth about a store and what arrived.
 *
 * @param refusedStatus of answers over the quota.
 */
function truthOf(store: Store, arrivals: Arrivals, refusedStatus: number): Truth {
  function* keys(resource: Resource): IterableIterator<RecordKey> {
    const table = store.table(resource);
    for (let last = -1; ;) {
      const seen = table.byKey.rank((id) => id <= last);
      const ids = table.byKey.slice(seen, seen + 1_000);
      if (ids.length === 0) return;
      for (const id of ids) if (table.has(id)) yield table.keyOf(id);
      last = ids.at(-1)!;
    }
  }
  const text = (resource: Resource, key: RecordKey) => {
    const table = store.table(resource);
    return table.text(table.idOf(key));
  };
  const get = (resource: Resource, key: RecordKey) => {
    const found = text(resource, key);
    return found === undefined ? undefined : (JSON.parse(found) as JsonValue);
  };
  return {
    *records(resource) {
      for (const key of keys(resource)) {
        const record = get(resource, key);
        if (record !== undefined) yield record;
      }
    },
    keys,
    get,
    text,
    count: (resource) => store.table(resource).size,
    get changes() {
      return store.changes();
    },
    requests: (endpoint) => arrivals.of(endpoint),
    mostInAnyWindow: (endpoint, windowMs) => arrivals.mostInAnyWindow(endpoint, windowMs),
    refused: (endpoint) =>
      (endpoint ? [endpoint] : ENDPOINTS)
        .flatMap((name) => arrivals.of(name))
        .filter(({ status }) => status === refusedStatus).length,
  };
}
