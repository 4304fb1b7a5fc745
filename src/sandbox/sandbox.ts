import { Accounts, type SandboxAccount } from './account.ts';
import type { FaultSpec } from './faults.ts';
import { toSettings, type SandboxOptions } from './options.ts';
import { Random } from './random.ts';
import { RESOURCES } from './resources.ts';
import { STAGING, Server } from './server.ts';

/**
 * A running sandbox: a server on a port, and the accounts that it serves. Members inherited from {@link SandboxAccount} act on the first
 * account.
 */
export interface Sandbox extends SandboxAccount {
  /** Base URL of the production API, without the version: the URL of a list is, for example, `${url}/v1/orders`. */
  readonly url: string;
  /** Base URL of the staging API, which ends in the version: the URL of a list is, for example, `${stagingUrl}/orders`. */
  readonly stagingUrl: string;
  /** All accounts, sorted by name. */
  readonly accounts: readonly SandboxAccount[];

  /**
   * Returns the account with this name.
   *
   * @throws RangeError if there is none.
   */
  account(name: string): SandboxAccount;
  /**
   * Injects a fault into every account and into requests with an unknown API key or token. Each account counts its own requests: `times: 3`
   * affects three requests of each account.
   *
   * @returns a function that removes these faults.
   */
  faultAll(spec: FaultSpec): () => void;
  /** Sets how far the server's clock is ahead of the real time, in ms. All accounts share the clock. */
  skewClock(ms: number): void;
  /** Sets the added latency of all accounts' responses, in ms. A pair is a range from which each latency is drawn. */
  setLatency(ms: number | readonly [number, number]): void;
  /** Makes the server unreachable: stops listening and closes all connections. Random changes of records continue. */
  down(): Promise<void>;
  /** Makes the server reachable again after `down`, on the same port. */
  up(): Promise<void>;
  /** Stops the server and all random changes. May be called more than once. */
  close(): Promise<void>;
}

/**
 * Starts a server that simulates the wine-business API with generated data, on a port of this machine.
 *
 * @throws CellarstreamError `SETTINGS` that names every option that is out of range; the system's error if the port cannot be opened.
 *
 * @example
 * ```ts
 * import { startSandbox } from 'cellarstream/sandbox';
 *
 * const sandbox = await startSandbox({ records: { orders: 1_000 }, changesPerSecond: 5 });
 * console.log(`export API_BASE_URL=${sandbox.url} API_KEY=${sandbox.apiKey}`);
 * sandbox.setStatus(100_234, 'payment_status', 'refunded');
 * console.log(sandbox.truth.changes.at(-1));
 * await sandbox.close();
 * ```
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = toSettings(options);
  const { host, seed, now } = settings;
  let skewMs = settings.clockSkewMs;
  const serverClock = () => now() + skewMs;
  const accounts = new Accounts(settings, serverClock);
  const all = accounts.all.map(({ controls }) => controls);
  const first = all[0]!;
  // Generates the lists before the port opens, so that the first response is as fast as later ones.
  for (const resource of RESOURCES) first.truth.count(resource);
  const random = new Random(seed, 0x1a7);
  const server = new Server({ settings, accounts, random, arrivalClock: now, serverClock });
  const port = await server.listen(host, settings.port);
  const url = `${settings.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  for (const account of all) account.setRate(settings.changesPerSecond);
  let closed = false;

  return {
    ...first,
    url,
    stagingUrl: `${url}${STAGING}`,
    accounts: all,
    account(name) {
      const account = accounts.named(name);
      if (!account)
        throw new RangeError(`the sandbox has no account ${name}: its accounts are ${range(all)}`);
      return account.controls;
    },
    faultAll(spec) {
      const faults = new Set([...accounts.all, accounts.fallback].map((account) => account.faults));
      const ends = [...faults].map((each) => each.add(spec));
      return () => ends.forEach((end) => end());
    },
    skewClock: (ms) => void (skewMs = ms),
    setLatency: (ms) => void (server.latencyMs = ms),
    down: () => server.stop(),
    async up() {
      if (!closed && !server.listening) await server.listen(host, port);
    },
    async close() {
      closed = true;
      for (const account of all) account.setRate(0);
      await server.stop();
    },
  };
}

function range(accounts: readonly SandboxAccount[]): string {
  return [...new Set([accounts[0]!.name, accounts.at(-1)!.name])].join(' to ');
}
