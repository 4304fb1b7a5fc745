import { Api } from './api.ts';
import { Arrivals } from './arrivals.ts';
import type { Arrival } from './arrivals.ts';
import { Faults } from './faults.ts';
import type { FaultSpec } from './faults.ts';
import { toSettings } from './options.ts';
import type { SandboxOptions } from './options.ts';
import { Random } from './random.ts';
import { ENDPOINTS } from './resources.ts';
import type { Endpoint, JsonObject, JsonValue, RecordKey, Resource } from './resources.ts';
import { STAGING } from './routes.ts';
import { Server } from './server.ts';
import { setStatus } from './set-status.ts';
import { Store } from './store.ts';
import type { Change, Patch } from './store.ts';
import { Tokens } from './tokens.ts';
import { Traffic } from './traffic.ts';

/** What is so: what a correct client must have found out in the end. */
export interface Truth {
  /** Records as they are served, parsed, in order of their keys; the list may change meanwhile. */
  records(resource: Resource): IterableIterator<JsonValue>;
  /** Keys of the records, in their order. */
  keys(resource: Resource): IterableIterator<RecordKey>;
  /** A record as it is served, parsed; undefined when there is none. */
  get(resource: Resource, key: RecordKey): JsonValue | undefined;
  /** The same as JSON text, byte for byte. */
  text(resource: Resource, key: RecordKey): string | undefined;
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

/** A running sandbox: the API on a port, the truth, and controls. */
export interface Sandbox {
  /** Production base, without the version: lists are at `${url}/v1/orders`. */
  readonly url: string;
  /** Staging base, which ends in the version: lists are at `${stagingUrl}/orders`. */
  readonly stagingUrl: string;
  readonly apiKey: string;
  readonly truth: Truth;

  /**
   * Changes a record: sets fields, or lets a function alter it or return what it shall be. Sets
   * `updated_at` unless the patch does. The record keeps being known by its old key here.
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
   * twice, no object at all. `updated_at` in it is not touched.
   * @throws SyntaxError when it is no JSON. RangeError when there is no such record.
   */
  replaceText(resource: Resource, key: RecordKey, text: string): void;
  /** Makes so many seeded random changes now, in all lists that have records. */
  changeSome(count: number): void;
  /** Random changes per second from now on; 0 stops them. */
  setRate(changesPerSecond: number): void;
  /** Makes requests go wrong. @returns a function that lifts the fault. */
  fault(spec: FaultSpec): () => void;
  /** No token given out until now is good any longer. */
  revokeTokens(): void;
  /** Sets how far the server's clock is ahead of the real one, in ms. */
  skewClock(ms: number): void;
  /** Sets how long answers take, in ms; a pair is a range. */
  setLatency(ms: number | readonly [number, number]): void;
  /** Stops listening and closes all connections; the data goes on changing. */
  down(): Promise<void>;
  /** Listens again, on the same port. */
  up(): Promise<void>;
  /** Ends everything. May be called more than once. */
  close(): Promise<void>;
}

/**
 * Starts the wine-business API with made-up data on a port of this machine.
 *
 * @throws CellarstreamError `SETTINGS` when options are out of range, all named at once; the
 * system's error when the port can't be had.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = toSettings(options);
  const { host, seed, apiKey, now } = settings;
  let skewMs = settings.clockSkewMs;
  const serverClock = () => now() + skewMs;
  const store = new Store(settings, serverClock);
  const traffic = new Traffic(store, seed, now);
  const tokens = new Tokens(settings, serverClock);
  const arrivals = new Arrivals(settings);
  const faults = new Faults(seed);
  const api = new Api(settings, store, tokens, serverClock);
  const random = new Random(seed, 0x1a7);
  const server = new Server({
    settings,
    api,
    arrivals,
    faults,
    random,
    arrivalClock: now,
    serverClock,
  });
  const port = await server.listen(host, settings.port);
  const url = `${settings.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  traffic.setRate(settings.changesPerSecond);
  let closed = false;

  return {
    url,
    stagingUrl: `${url}${STAGING}`,
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
    fault: (spec) => faults.add(spec),
    revokeTokens: () => tokens.revoke(),
    skewClock: (ms) => void (skewMs = ms),
    setLatency: (ms) => void (server.latencyMs = ms),
    down: () => server.stop(),
    async up() {
      if (!closed && !server.listening) await server.listen(host, port);
    },
    async close() {
      closed = true;
      traffic.setRate(0);
      await server.stop();
    },
  };
}

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
