// The accounts of a sandbox: each with its records, quotas, faults, and controls for tests.

import { randomUUID } from 'node:crypto';
import { boundedMap, type BoundedMap } from '../core/bounded-map.ts';
import { SandboxApi, Hidden, type ApiResponse } from './api.ts';
import { Arrivals, type Arrival } from './arrivals.ts';
import { convertedField, newField, type DriftOptions } from './drift.ts';
import { Faults, type FaultSpec } from './faults.ts';
import type { SandboxSettings } from './options.ts';
import type { Patch, JsonObject, JsonValue, RecordKey, Resource, Endpoint } from './resources.ts';
import { RandomDrift, Traffic } from './traffic.ts';
import { setStatus } from './status-changes.ts';
import { RecordStore, type Change } from './store.ts';
import { Tokens, accountIn } from './tokens.ts';
import { mix } from './random.ts';
import { Trade } from './trade.ts';
import { ENDPOINTS } from './resources.ts';

/**
 * One account of the simulated API: its true records, with which a client's results are compared, and controls that affect only this
 * account.
 */
export interface SandboxAccount {
  /** Name of the account: `winery-1`, zero-padded if there are more than nine accounts (`winery-01`). */
  readonly name: string;
  /** The API key that the account's login accepts. */
  readonly apiKey: string;
  /**
   * The account's true records, their changes, and the requests that the account has received. Tests compare a client's results with them.
   */
  readonly truth: Truth;
  /**
   * Changes a record: sets fields, or calls a function that alters the record or returns a replacement. The function gets the record
   * without drift (`addField`, `convertField`). Also sets `updated_at` in a list with dates, unless the patch does. A record whose key
   * field is changed is still found by its old key.
   *
   * @throws RangeError if there is no such record.
   */
  change(resource: Resource, key: RecordKey, patch: Patch): void;
  /**
   * Sets a status, or another field, of an order or of one of its parts. Examples of `field`: `payment_status`, `fulfillment_info.status`
   * (in the first element), `fulfillment_info[F-100001-2].status`.
   *
   * @throws RangeError if there is no such order, the path is malformed, or the order has no such part.
   */
  setStatus(orderNumber: number, field: string, value: string | null): void;
  /**
   * Advances an order by one step, such as paying, packing, shipping or delivering.
   *
   * @returns the name of the step, or undefined if the order is complete and nothing changed.
   * @throws RangeError if there is no such order, or if the order lacks the fields that the steps rely on.
   */
  advance(orderNumber: number): string | undefined;
  /** Creates a random record, with the fields of `partial` in place of generated ones. @returns the record's key. */
  create(resource: Resource, partial?: JsonObject): RecordKey;
  /**
   * Deletes a record.
   *
   * @throws RangeError if there is no such record.
   */
  remove(resource: Resource, key: RecordKey): void;
  /**
   * Serves exactly this JSON text for a record until its next change, without drift (such as added fields) or a new `updated_at`. The text
   * may hold numbers that JavaScript cannot represent, duplicate names, or a value that is not an object.
   *
   * @throws SyntaxError if the text is not JSON. RangeError if there is no such record.
   */
  replaceText(resource: Resource, key: RecordKey, text: string): void;
  /** Makes `count` seeded random changes at once, spread over all lists: alters, creates and deletes records. */
  changeSome(count: number): void;
  /** Sets the rate of random changes to the account's records, per second; 0 stops them. */
  setRate(changesPerSecond: number): void;
  /**
   * Adds a field to records that do not have it: to `options.existing` records at once, and to every record when it is later created or
   * changed.
   *
   * @param field Name, a path with dots (`loyalty.since`) or a JSON Pointer (`/loyalty/since`). Missing objects on the path are created. In
   * an array, a number selects one element; any other name applies to every element.
   * @returns a function that stops this. After that, a record loses the field when it is next changed.
   * @throws RangeError if a name in the path is empty.
   */
  addField(resource: Resource, field: string, value: JsonValue, options?: DriftOptions): () => void;
  /**
   * Like {@link addField}, but converts the values of an existing field; for example, `String` turns numbers into text. Null is not
   * converted.
   */
  convertField(
    resource: Resource,
    field: string,
    convert: (value: JsonValue) => JsonValue,
    options?: DriftOptions,
  ): () => void;
  /**
   * Serves a record without its key field until the key is restored. `truth` still finds the record by its key, and so does the query
   * parameter `orderNumber` of orders.
   *
   * @param options `touch`: whether removing and restoring the key set `updated_at`. Default true.
   * @returns a function that restores the key.
   * @throws RangeError if there is no such record.
   */
  loseKey(resource: Resource, key: RecordKey, options?: Pick<DriftOptions, 'touch'>): () => void;
  /**
   * Hides a share of a list's records, including records that are created later: pages, totals and requests by `orderNumber` omit hidden
   * records, but `truth` has them.
   *
   * @param share From 0 to 1; approximate for short lists. A larger share also hides every record that a smaller share hides.
   * @returns a function that shows the records again.
   * @throws RangeError if the share is out of range.
   */
  hide(resource: Resource, share: number): () => void;
  /** Injects a fault into the responses to some or all requests. @returns a function that removes the fault. */
  fault(spec: FaultSpec): () => void;
  /** Revokes every access token that the account has issued so far. */
  revokeTokens(): void;
}

export interface ServedAccount {
  readonly api: SandboxApi;
  readonly arrivals: Arrivals;
  readonly faults: Faults;
  /**
   * List responses that the fault `cached` has stored, by list and query string. `at`: time of storing by the server's clock, in epoch ms.
   */
  readonly cachedPages: BoundedMap<string, ApiResponse & { readonly at: number }>;
  readonly controls: SandboxAccount;
}

/**
 * Creates an account. Its records are generated only when they are first used.
 *
 * @param settings Settings of the account, with its own seed and API key.
 * @param trade The generated data that all accounts share.
 */
function makeServedAccount(
  name: string,
  settings: SandboxSettings,
  trade: Trade,
  clock: () => number,
): ServedAccount {
  const { seed, apiKey } = settings;
  const store = new RecordStore(settings, clock, trade);
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
  return {
    api: new SandboxApi(settings, store, tokens, hidden, clock),
    arrivals,
    faults,
    cachedPages: boundedMap(MAX_CACHED_PAGES),
    controls,
  };
}

/** Maximum number of cached pages of an account. When it is reached, the older half of the pages is discarded. */
const MAX_CACHED_PAGES = 2_000;

/** The accounts of a sandbox. Finds the account of a request by its API key or token. */
export class Accounts {
  /** All accounts, sorted by name. */
  readonly all: readonly ServedAccount[];
  /**
   * Account that handles requests with an unknown API key or token, so that they do not use another account's quota. In a sandbox with only
   * one account, it is that account.
   */
  readonly fallback: ServedAccount;
  readonly #byName: ReadonlyMap<string, ServedAccount>;
  readonly #byKey: ReadonlyMap<unknown, ServedAccount>;

  /** @param clock The server's clock, in epoch ms. */
  constructor(settings: SandboxSettings, clock: () => number) {
    const { accounts, seed, apiKey, records } = settings;
    const trade = new Trade(seed, records);
    const digits = String(accounts).length;
    this.all = Array.from({ length: accounts }, (_, k) => {
      const name = `winery-${String(k + 1).padStart(digits, '0')}`;
      const own = k > 0 ? { seed: mix(seed, k), apiKey: `${apiKey}-${k + 1}` } : {};
      return makeServedAccount(name, { ...settings, ...own }, trade, clock);
    });
    // A seed that no account has, so that its tokens are never accepted, not even tokens issued by an earlier start of the sandbox.
    const none = { ...settings, seed: mix(seed, -1), apiKey: randomUUID() };
    this.fallback =
      accounts === 1 ? this.all[0]! : makeServedAccount('unknown', none, trade, clock);
    this.#byName = new Map(this.all.map((account) => [account.controls.name, account]));
    this.#byKey = new Map(this.all.map((account) => [account.controls.apiKey, account]));
  }

  named(name: string): ServedAccount | undefined {
    return this.#byName.get(name);
  }

  /** Returns the account with this API key, or the fallback account if no account has the key. */
  ofKey(apiKey: unknown): ServedAccount {
    return this.#byKey.get(apiKey) ?? this.fallback;
  }

  /** Returns the account that an access token names, without verifying the token; the fallback account if there is no such account. */
  ofToken(token: string | undefined): ServedAccount {
    return this.#byName.get((token && accountIn(token)) ?? '') ?? this.fallback;
  }
}

/**
 * The true state of a sandbox account, which a correct client must eventually arrive at. It includes drift (added and converted fields) and
 * hidden records, but not the faults that the sandbox simulates.
 */
export interface Truth {
  /** Iterates over a list's records in key order, parsed, with drift (such as added fields). The list may change during the iteration. */
  records(resource: Resource): IterableIterator<JsonValue>;
  /** Iterates over the keys of a list's records, in key order. */
  keys(resource: Resource): IterableIterator<RecordKey>;
  /** Returns a record, parsed, with drift (such as added fields); undefined if there is no such record. */
  get(resource: Resource, key: RecordKey): JsonValue | undefined;
  /** Returns the exact JSON text of a record, with drift (such as added fields); undefined if there is no such record. */
  text(resource: Resource, key: RecordKey): string | undefined;
  /** Number of records in the list. */
  count(resource: Resource): number;
  /** The last `changeLogLimit` changes of the account's records, in the order in which they became visible. */
  readonly changes: readonly Change[];
  /** Returns the last `requestLogLimit` requests to an endpoint, including refused ones, in the order of their arrival. */
  requests(endpoint: Endpoint): readonly Readonly<Arrival>[];
  /** Maximum number of logged requests to the endpoint that arrived within any half-open window `[t, t + windowMs)`. */
  mostInAnyWindow(endpoint: Endpoint, windowMs: number): number;
  /**
   * Number of logged requests whose response has the status for requests over the quota (`readings.rateLimited.status`). Default for
   * `endpoint`: all endpoints.
   */
  refused(endpoint?: Endpoint): number;
}

function truthOf(store: RecordStore, arrivals: Arrivals, refusedStatus: number): Truth {
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
