import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'dotenv';
import { CellarstreamError } from '../core/errors.ts';
import { RESOURCES } from '../resources/resources.ts';
import type { Config, ConfigWith, Need } from './config.ts';
import { loadConfig } from './load-config.ts';
import { settingTexts } from './setting-texts.ts';
import { settingsFileText } from './settings-file.ts';
import { keyFieldsSetting, SCHEMA } from './settings.ts';

/** What a file of an account may set; all else is the instance's, from its environment. */
const OF_ACCOUNT: ReadonlySet<string> = new Set([
  ...['API_BASE_URL', 'API_LOGIN_URL', 'API_CA_FILE', 'API_KEY', 'API_KEY_FILE'],
  ...['API_KEY_PATIENCE_MS', 'RESOURCES', 'START_FROM', 'TOPIC_PREFIX'],
  ...['QUOTA_PER_MINUTE', 'LOGIN_QUOTA_PER_MINUTE', 'QUOTA_SCOPE', 'INITIAL_SNAPSHOT_PERCENT'],
  ...['POLL_INTERVAL_MS', 'LOOKBACK_MS', 'SWEEP_INTERVAL_MS', 'PAGE_SIZE'],
  ...['DELETE_LIMIT_PERCENT', 'DELETE_PROOF_MS', 'VOLATILE_FIELDS', 'KEY_FORMAT'],
  ...['PII_DROP', 'PII_MASK', 'PII_HMAC', 'PII_HMAC_KEY', 'PII_HMAC_KEY_FILE'],
  ...RESOURCES.map(keyFieldsSetting),
]);

/** Each pair is one setting: where a file has either, the environment has no say. */
const TWINS = [
  ['API_KEY', 'API_KEY_FILE'],
  ['PII_HMAC_KEY', 'PII_HMAC_KEY_FILE'],
] as const;

/** Where the files of accounts are, and what they leave open. */
export interface AccountsOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where `.env` is looked for, and what relative paths start from. */
  readonly cwd: string;
  /** The instance's own settings, of which `accountsDir` is one. */
  readonly config: Config & { readonly accountsDir: string };
}

/** Whether these settings are of a fleet's instance. */
export function hasAccounts({ env, cwd }: Pick<AccountsOptions, 'env' | 'cwd'>): boolean {
  return settingTexts(env, cwd, []).ACCOUNTS_DIR !== undefined; // what is wrong says `loadConfig`
}

/** The file of an account: its name is the account's. */
const FILE = /^(?<account>.+)\.env$/;

/**
 * The accounts of a folder, by their files, in order. Files of other names are none, those that begin with a dot
 * neither.
 *
 * @throws CellarstreamError `SETTINGS` when the folder can't be read.
 */
export function accountNames(folder: string): readonly string[] {
  let files: string[];
  try {
    files = readdirSync(folder);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'no reason given';
    throw new CellarstreamError(
      'SETTINGS',
      `ACCOUNTS_DIR can't be read (${code}): it must be a folder with a file <account>.env for each account`,
      { cause },
    );
  }
  const names = files.flatMap((file) => FILE.exec(file)?.groups?.account ?? []);
  return names.filter((name) => !name.startsWith('.')).sort();
}

/** What `run` can't do without. */
const NEEDS = ['api', 'kafka', 'registry'] as const;

/**
 * The configuration of one account: its file before the environment. Its topics are under `<prefix>.<account>`, and its state in
 * a folder of its name, unless the file has a `TOPIC_PREFIX`.
 *
 * @param needs Groups whose required settings must be there. Default those that `run` needs.
 * @throws CellarstreamError `SETTINGS` in lines that begin with the name of the file.
 */
export function loadAccount(name: string, options: AccountsOptions): AccountConfig;
export function loadAccount<N extends Need>(
  name: string,
  options: AccountsOptions,
  needs: readonly N[],
): ConfigWith<N>;
export function loadAccount(
  name: string,
  { env, cwd, config }: AccountsOptions,
  needs: readonly Need[] = NEEDS,
): Config {
  const file = `${name}.env`;
  try {
    expectName(name);
    const found = settingsFileText(readFileSync(join(config.accountsDir, file)));
    if ('advice' in found) throw new CellarstreamError('SETTINGS', found.advice);
    const own = parse(found.text);
    expectOwn(own);
    return loadConfig({
      env: {
        ...without(env, own),
        TOPIC_PREFIX: `${config.topics.prefix}.${name}`,
        ...own,
        ACCOUNT_NAME: name,
        STATE_DIR: resolve(config.stateDir, name),
      },
      cwd,
      needs,
      sharedPrefix: config.topics.sharedPrefix,
    });
  } catch (error) {
    throw ofFile(file, error);
  }
}

function expectName(name: string): void {
  if (SCHEMA.shape.ACCOUNT_NAME.safeParse(name).success) return;
  const advice =
    'is not a valid name of an account: use letters, digits, dots, hyphens or underscores';
  throw new CellarstreamError('SETTINGS', advice);
}

function expectOwn(own: Readonly<Record<string, string>>): void {
  const foreign = Object.keys(own).filter((setting) => !OF_ACCOUNT.has(setting));
  if (foreign.length === 0) return;
  const advice = `${foreign.join(', ')} can't be set for an account: each is a setting of the instance, or no setting at all`;
  throw new CellarstreamError('SETTINGS', advice);
}

function without(
  env: AccountsOptions['env'],
  own: Readonly<Record<string, string>>,
): AccountsOptions['env'] {
  const hidden = TWINS.filter((pair) => pair.some((name) => (own[name] ?? '') !== '')).flat();
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !hidden.some((each) => each === name)),
  );
}

function ofFile(file: string, error: unknown): unknown {
  if (error instanceof CellarstreamError) {
    return new CellarstreamError(error.code, `${file}: ${error.message}`, { cause: error });
  }
  const code = (error as NodeJS.ErrnoException).code;
  if (code === undefined) return error;
  return new CellarstreamError(
    'SETTINGS',
    `${file} can't be read (${code}): check its permissions`,
    { cause: error },
  );
}

/** An account's settings, checked. */
export type AccountConfig = ConfigWith<'api' | 'kafka' | 'registry'>;

/** What an account's file comes to: its settings, or what is wrong with them. */
export type AccountFile = { readonly config: AccountConfig } | { readonly error: unknown };

/**
 * Accounts by name, in order. What is wrong with a file is an error of that account alone; so is a key or a prefix that an
 * account before it has: two would count one quota twice, or publish their records under each other's keys.
 *
 * @throws CellarstreamError `SETTINGS` when the folder can't be read.
 */
export function loadAccounts(options: AccountsOptions): ReadonlyMap<string, AccountFile> {
  const accounts = new Map<string, AccountFile>();
  const owners = new Map<string, string>();
  for (const name of accountNames(options.config.accountsDir)) {
    accounts.set(
      name,
      attempt(() => ({ config: expectAlone(loadAccount(name, options), owners) })),
    );
  }
  return accounts;
}

function attempt(load: () => AccountFile): AccountFile {
  try {
    return load();
  } catch (error) {
    return { error };
  }
}

/** @param owners By key and by prefix, the account that has it. */
function expectAlone(config: AccountConfig, owners: Map<string, string>): AccountConfig {
  const { account, api, topics } = config;
  const own = {
    API_KEY: `${api.baseUrl} ${api.key.reveal()}`,
    TOPIC_PREFIX: topics.prefix,
  };
  for (const [setting, value] of Object.entries(own)) {
    const other = owners.get(`${setting} ${value}`);
    if (other !== undefined) {
      const advice = `${setting} is that of ${other}.env: each account needs one of its own`;
      throw new CellarstreamError('SETTINGS', `${account}.env: ${advice}`);
    }
  }
  for (const [setting, value] of Object.entries(own)) owners.set(`${setting} ${value}`, account);
  return config;
}
