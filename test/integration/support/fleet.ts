import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { Resource, SandboxAccount } from '../../../src/sandbox/index.ts';
import { checkOrders, checkStatusChanges, repeatedSequences } from './checker.ts';
import type { Cli } from './cli.ts';
import { publishedTruth } from './published-truth.ts';
import { atFailure } from './running-test.ts';
import { cliForTest, folderForTest, sandboxForTest } from './service.ts';
import type { Env } from './service.ts';
import { readTopic } from './topic-reader.ts';

/** The quota of each account at its API. */
export const QUOTA = { list: 100, login: 10 } as const;

export interface TestAccount {
  readonly name: string;
  readonly sandbox: SandboxAccount;
  /** Of all requests for its list, when they came: ms since the epoch. */
  readonly polls: () => readonly number[];
  /** Of those that were answered. */
  readonly answered: () => readonly number[];
}

export interface Instance {
  readonly name: string;
  readonly cli: Cli;
  /** The accounts that it has claimed since the beginning, in order. */
  readonly claimed: () => readonly string[];
}

export interface TestFleet {
  readonly prefix: string;
  /** Of the API, as all instances reach it that are not told otherwise. */
  readonly apiUrl: string;
  readonly brokers: readonly string[];
  readonly accounts: readonly TestAccount[];
  readonly accountsDir: string;
  /** A folder with the files of these accounts alone: the `ACCOUNTS_DIR` of an instance that knows no others. */
  readonly folderOf: (accounts: readonly TestAccount[]) => string;
  /** The settings that all instances share; a command takes them too. */
  readonly env: Env;
  readonly start: (name: string, env?: Env) => Instance;
  /** Writes an account's file anew, or removes it; in {@link accountsDir}, or in another folder. */
  readonly setFile: (account: string, text: string | undefined, folder?: string) => void;
  readonly fileOf: (account: TestAccount) => string;
  /** What has broken the promise of the quota until now. */
  readonly overruns: () => string[];
  /** Stops all changes, waits until all is published, and gives what breaks a promise. */
  readonly violations: () => Promise<string[]>;
}

export interface TestFleetOptions {
  readonly prefix: string;
  readonly accounts: number;
  /** Of each list at the start. Default 100 orders. */
  readonly records?: Partial<Readonly<Record<Resource, number>>>;
  /** Of each account. Default 1. */
  readonly changesPerSecond?: number;
  /** Default: those that all tests share. */
  readonly services?: { readonly brokers: readonly string[]; readonly registryUrl: string };
  /** Settings of all instances, besides. */
  readonly env?: Env;
}

/** Accounts of one API, each with data and quotas of its own, and instances that share them out. */
export async function fleetForTest(options: TestFleetOptions): Promise<TestFleet> {
  const { prefix, records = { orders: 100 }, changesPerSecond = 1 } = options;
  const { brokers, registryUrl } = options.services ?? {
    brokers: inject('brokers'),
    registryUrl: inject('registryUrl'),
  };
  const api = await sandboxForTest({
    accounts: options.accounts,
    records,
    quotaPerMinute: QUOTA.list,
    loginQuotaPerMinute: QUOTA.login,
    changesPerSecond,
  });
  const accounts = api.accounts.map((sandbox): TestAccount => {
    const requests = () => sandbox.truth.requests('orders');
    return {
      ...{ name: sandbox.name, sandbox },
      polls: () => requests().map(({ at }) => at),
      answered: () => requests().flatMap(({ at, status }) => (status === 200 ? [at] : [])),
    };
  });
  const root = folderForTest();
  const accountsDir = join(root, 'accounts');
  mkdirSync(accountsDir);
  const fileOf = ({ sandbox }: TestAccount) => `API_KEY=${sandbox.apiKey}\n`;
  const setFile = (account: string, text: string | undefined, folder = accountsDir) => {
    const file = join(folder, `${account}.env`);
    if (text === undefined) rmSync(file);
    else writeFileSync(file, text);
  };
  for (const account of accounts) setFile(account.name, fileOf(account));
  const shared: Env = {
    ACCOUNTS_DIR: accountsDir,
    API_BASE_URL: api.url,
    KAFKA_BROKERS: brokers.join(','),
    SCHEMA_REGISTRY_URL: registryUrl,
    TOPIC_PREFIX: prefix,
    TOPIC_PARTITIONS: '1',
    RESOURCES: 'orders',
    POLL_INTERVAL_MS: '1000',
    SWEEP_INTERVAL_MS: '5000', // orders are deleted too
    DELETE_LIMIT_PERCENT: '100',
    DELETE_PROOF_MS: '0',
    ...options.env,
  };

  return {
    ...{ prefix, apiUrl: api.url, brokers, accounts, accountsDir, env: shared, fileOf, setFile },
    folderOf: (some) => {
      const folder = folderForTest();
      for (const { name } of some)
        copyFileSync(join(accountsDir, `${name}.env`), join(folder, `${name}.env`));
      return folder;
    },
    start: (name, env = {}) => {
      const stateDir = join(root, `state-${name}`);
      mkdirSync(stateDir, { recursive: true });
      const cli = cliForTest(['run'], {
        ...shared,
        INSTANCE_NAME: name,
        STATE_DIR: stateDir,
        ...env,
      });
      const claimed = () =>
        cli
          .lines()
          .flatMap(({ event, step, account }) =>
            event === 'account' && step === 'claim' ? [String(account)] : [],
          );
      atFailure(() => console.log(`what ${name} said:\n${cli.stderr().slice(-4_000)}`));
      return { name, cli, claimed };
    },
    overruns: () =>
      accounts.flatMap(({ name, sandbox }) => overruns(sandbox).map((each) => `${name}: ${each}`)),
    violations: async () => {
      for (const { sandbox } of accounts) sandbox.setRate(0);
      const found: string[] = [];
      for (const { name, sandbox } of accounts) {
        const topic = (of: string) => readTopic(brokers, registryUrl, `${prefix}.${name}.${of}`);
        await publishedTruth(brokers, registryUrl, `${prefix}.${name}`, sandbox);
        const events = await topic('orders');
        const all = [
          ...checkOrders(events, sandbox).violations,
          ...checkStatusChanges(await topic('order-status-changes'), events).violations,
          ...repeatedSequences(events),
          ...overruns(sandbox),
        ];
        found.push(...all.map((violation) => `${name}: ${violation}`));
      }
      return found;
    },
  };
}

function overruns(sandbox: SandboxAccount): string[] {
  const most = sandbox.truth.mostInAnyWindow('orders', 60_000);
  const logins = sandbox.truth.mostInAnyWindow('login', 60_000);
  const refused = sandbox.truth.refused();
  return [
    ...(most > QUOTA.list ? [`${most} requests in a minute`] : []),
    ...(logins > QUOTA.login ? [`${logins} logins in a minute`] : []),
    ...(refused > 0 ? [`${refused} answers 429`] : []),
  ];
}
