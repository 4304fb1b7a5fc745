import { Api } from './api.ts';
import { Arrivals } from './arrivals.ts';
import { convertedField, newField } from './drift.ts';
import type { DriftOptions } from './drift.ts';
import { Faults } from './faults.ts';
import type { FaultSpec } from './faults.ts';
import { Hidden } from './hidden.ts';
import type { Settings } from './options.ts';
import type { Patch } from './patch.ts';
import { RandomDrift } from './random-drift.ts';
import type { JsonObject, JsonValue, RecordKey, Resource } from './resources.ts';
import { setStatus } from './set-status.ts';
import { Store } from './store.ts';
import { Tokens } from './tokens.ts';
import type { Trade } from './trade.ts';
import { Traffic } from './traffic.ts';
import { truthOf } from './truth.ts';
import type { Truth } from './truth.ts';

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
export function makeAccount(
  name: string,
  settings: Settings,
  trade: Trade,
  clock: () => number,
): Account {
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
