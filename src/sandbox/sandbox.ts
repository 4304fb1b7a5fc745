// Starts a sandbox: a server, and the accounts behind it.

import type { SandboxAccount } from './account.ts';
import { Accounts } from './account.ts';
import type { FaultSpec } from './faults.ts';
import { toSettings } from './options.ts';
import type { SandboxOptions } from './options.ts';
import { Random } from './random.ts';
import { RESOURCES } from './resources.ts';
import { STAGING, Server } from './server.ts';

/**
 * A running sandbox: the API on a port, and its accounts. What it has of an account itself is of the
 * first, which is the only one unless the option `accounts` says otherwise.
 */
export interface Sandbox extends SandboxAccount {
  /** Production base, without the version: lists are at `${url}/v1/orders`. */
  readonly url: string;
  /** Staging base, which ends in the version: lists are at `${stagingUrl}/orders`. */
  readonly stagingUrl: string;
  /** In order of their names: `winery-01`, `winery-02`, ... */
  readonly accounts: readonly SandboxAccount[];

  /** @throws RangeError when there is no account of this name. */
  account(name: string): SandboxAccount;
  /**
   * Makes requests go wrong in every account, and those that are of none. Each account counts for
   * itself: `times: 3` are three requests of each. @returns a function that lifts all of them.
   */
  faultAll(spec: FaultSpec): () => void;
  /** Sets how far the server's clock, which all accounts share, is ahead of the real one, in ms. */
  skewClock(ms: number): void;
  /** Sets how long answers take in all accounts, in ms; a pair is a range. */
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
  const { controls: first } = accounts.first;
  // Made before the port is there, so that the first answer takes no longer than the next.
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
      if (!account) throw new RangeError(`no account ${name}: they are ${range(all)}`);
      return account.controls;
    },
    faultAll(spec) {
      const faults = new Set([...accounts.all, accounts.nobody].map((account) => account.faults));
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
