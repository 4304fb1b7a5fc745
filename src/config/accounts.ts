import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'dotenv';
import { CellarstreamError } from '../core/errors.ts';
import { credentialsIn, CREDENTIALS } from '../description/credentials.ts';
import type { Config, ConfigWith, Need } from './config.ts';
import { credentialText } from './key-digest.ts';
import { loadConfig } from './load-config.ts';
import type { SettingsSource } from './load-config.ts';
import { overlaid, settingsFileText, settingTexts } from './setting-texts.ts';
import { settingsFor } from './settings.ts';

/**
 * Sources of the accounts' settings. `config` names the folder of account files. Settings that an account's file does not set are read from
 * `env` and from the `.env` in `cwd`.
 */
export interface AccountsOptions extends SettingsSource {
  /** The instance's own configuration, with `accountsDir`. */
  readonly config: Config & { readonly accountsDir: string };
}

/** Whether the settings are those of a fleet's instance, that is, `ACCOUNTS_DIR` is set. */
export function hasAccounts({ env, cwd }: SettingsSource): boolean {
  return settingTexts(env, cwd, []).ACCOUNTS_DIR !== undefined; // errors in the settings are reported by `loadConfig`
}

/** File name of an account: the account's name, which does not begin with a dot, followed by `.env`. */
const ACCOUNT_FILE = /^(?!\.)(?<account>.+)\.env$/;

/**
 * Returns the names of the accounts that have a file in the folder, sorted.
 *
 * @throws CellarstreamError `SETTINGS` if the folder can't be read.
 */
export function accountNames(folder: string): readonly string[] {
  let files: string[];
  try {
    files = readdirSync(folder);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'no reason given';
    throw settingsError(
      `ACCOUNTS_DIR can't be read (${code}): it must be a folder with a file <account>.env for each account`,
      cause,
    );
  }
  return files.flatMap((file) => ACCOUNT_FILE.exec(file)?.groups?.account ?? []).sort();
}

/**
 * Loads the configuration of one account. The account's file takes precedence over the environment. The account's topics are under
 * `<prefix>.<account>` unless the file sets `TOPIC_PREFIX`.
 *
 * @param needs Groups whose required settings must be set.
 * @throws CellarstreamError `SETTINGS`, whose message begins with the name of the file.
 */
export function loadAccount<N extends Need>(
  name: string,
  { env, cwd, config }: AccountsOptions,
  needs: readonly N[],
): ConfigWith<N> {
  const file = `${name}.env`;
  const { schema, perAccount } = settingsFor(config.description);
  try {
    if (!schema.shape.ACCOUNT_NAME.safeParse(name).success) {
      throw settingsError(
        'is not a valid name of an account: use letters, digits, dots, hyphens or underscores',
      );
    }
    const found = settingsFileText(readFileSync(join(config.accountsDir, file)));
    if ('advice' in found) throw settingsError(found.advice);
    const own = parse(found.text);
    expectOwn(own, perAccount);
    return loadConfig({
      env: {
        ...overlaid({ ...env, TOPIC_PREFIX: `${config.topics.prefix}.${name}` }, own),
        ACCOUNT_NAME: name,
        STATE_DIR: resolve(config.stateDir, name),
      },
      cwd,
      needs,
      sharedPrefix: config.topics.sharedPrefix,
      description: config.description,
    });
  } catch (error) {
    if (error instanceof CellarstreamError) {
      throw new CellarstreamError(error.code, `${file}: ${error.message}`, { cause: error });
    }
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw settingsError(`${file} can't be read (${code}): check its permissions`, error);
  }
}

/** Throws if an account's file (`own`) contains a name that is not in `perAccount`: a setting of the instance, or a misspelled name. */
function expectOwn(own: Readonly<Record<string, string>>, perAccount: readonly string[]): void {
  const foreign = Object.keys(own).filter((name) => !perAccount.includes(name));
  if (foreign.length === 0) return;
  throw settingsError(
    `${foreign.join(', ')} can't be set in the file of an account: these are settings of the instance, which belong in its environment, or misspelled names`,
  );
}

/** Groups of settings that `run` requires. */
const NEEDS = ['api', 'kafka', 'registry'] as const;
/** The validated settings of an account. */
export type AccountConfig = ConfigWith<(typeof NEEDS)[number]>;

/** Result of loading an account's file: the validated settings, or the error that loading ended with. */
export type AccountFile = { readonly config: AccountConfig } | { readonly error: unknown };

/**
 * Loads all accounts of the folder, by name, sorted. An error in a file concerns that account only. An account gets an error, too, if an
 * account before it has the same credentials at the same base URL, or the same topic prefix.
 *
 * @throws CellarstreamError `SETTINGS` if the folder can't be read.
 */
export function loadAccounts(options: AccountsOptions): ReadonlyMap<string, AccountFile> {
  const accounts = new Map<string, AccountFile>();
  const owners = new Map<string, string>();
  for (const name of accountNames(options.config.accountsDir)) {
    try {
      accounts.set(name, { config: expectUnique(loadAccount(name, options, NEEDS), owners) });
    } catch (error) {
      accounts.set(name, { error });
    }
  }
  return accounts;
}

/**
 * Throws if an earlier account has the same credentials at the same base URL, or the same topic prefix; otherwise adds this account to
 * `owners`.
 *
 * @param owners Maps `<setting> <base URL> <credentials>` and `TOPIC_PREFIX <prefix>` of each earlier account to the account's name.
 */
function expectUnique(config: AccountConfig, owners: Map<string, string>): AccountConfig {
  const { account, api, topics, description } = config;
  const [credential] = credentialsIn(description.auth);
  const setting = credential === undefined ? 'API_BASE_URL' : CREDENTIALS[credential];
  // Two accounts with an equal value would each use the API key's whole quota, or publish different records under equal keys.
  const own = { [setting]: credentialText(api), TOPIC_PREFIX: topics.prefix };
  for (const [setting, value] of Object.entries(own)) {
    const other = owners.get(`${setting} ${value}`);
    if (other !== undefined) {
      throw settingsError(
        `${account}.env: ${setting} has the same value in ${other}.env: each account needs a value of its own`,
      );
    }
  }
  for (const [setting, value] of Object.entries(own)) owners.set(`${setting} ${value}`, account);
  return config;
}

function settingsError(message: string, cause?: unknown): CellarstreamError {
  return new CellarstreamError('SETTINGS', message, cause === undefined ? {} : { cause });
}
