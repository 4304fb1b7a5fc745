import type { Kafka } from 'kafkajs';
import { accountNames, hasAccounts, loadAccount } from '../config/accounts.ts';
import type { Config, ConfigWith, Need } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import type { SettingsSource } from '../config/load-config.ts';
import { CellarstreamError } from '../core/errors.ts';
import { existing } from '../kafka/client/topic-facts.ts';
import { topicNames } from '../schemas/events/topics.ts';

export function processSource(): SettingsSource {
  return { env: process.env, cwd: process.cwd() };
}

/** Whether the settings say how to reach Kafka. */
export function hasKafka<C extends Config>(config: C): config is C & ConfigWith<'kafka'> {
  return config.kafka !== undefined;
}

/** Maximum number of account names in an error text. */
const MAX_NAMES = 10;

/**
 * Loads the settings of the account that a command is for. With `ACCOUNTS_DIR` the account has to be named, and its file is read; otherwise
 * the environment describes the only account.
 *
 * @param account Value of `--account`.
 * @throws CellarstreamError `SETTINGS` if a fleet's account is not named, or if there is no account with that name; also the errors of
 * `loadAccount`.
 */
export function oneAccount<N extends Need>(
  source: SettingsSource,
  account: string | undefined,
  needs: readonly N[],
): ConfigWith<N> {
  if (!hasAccounts(source)) {
    const config = loadConfig({ ...source, needs });
    if (account === undefined || account === config.account) return config;
    throw usageError(
      `--account ${account}: the settings have only the account ${config.account} (ACCOUNT_NAME). Leave out --account, or, for an account of a fleet, set ACCOUNTS_DIR`,
    );
  }
  // The environment need not have the settings that the account's file provides.
  const { accountsDir = '', ...own } = loadConfig(source);
  const names = accountNames(accountsDir);
  if (account === undefined) throw usageError(`--account is needed: ${inFolder(names)}`);
  if (!names.includes(account)) throw usageError(`--account ${account}: ${inFolder(names)}`);
  return loadAccount(account, { ...source, config: { ...own, accountsDir } }, needs);
}

/**
 * Loads the settings of `replay` and `verify`, which need no API key. If ACCOUNTS_DIR is set, reads the account's file. Otherwise
 * {@link replayedPrefix} determines the account's topics.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
export function replaySettings(
  source: SettingsSource,
  account: string | undefined,
): ConfigWith<'kafka' | 'registry'> {
  return oneAccount(source, hasAccounts(source) ? account : undefined, ['kafka', 'registry']);
}

/**
 * Returns the prefix of an account's topics, by the first of these cases that applies:
 *
 * 1. `account` is undefined: TOPIC_PREFIX.
 * 2. ACCOUNTS_DIR is set: the prefix in the given settings, which are then those of the account.
 * 3. Kafka has a fleet's topic under TOPIC_PREFIX: `<TOPIC_PREFIX>.<account>`.
 * 4. `account` is ACCOUNT_NAME: TOPIC_PREFIX.
 *
 * @throws CellarstreamError `SETTINGS` if no case applies.
 */
export async function replayedPrefix(
  { account: own, accountsDir, topics }: ConfigWith<'kafka' | 'registry'>,
  account: string | undefined,
  kafka: Kafka,
): Promise<string> {
  const { prefix } = topics;
  if (account === undefined || accountsDir !== undefined) return prefix;
  const { fleet } = topicNames(prefix);
  // For an account whose file sets another prefix, the user has to set TOPIC_PREFIX.
  if ((await existing({ kafka }, [fleet])).has(fleet)) return `${prefix}.${account}`;
  if (account === own) return prefix;
  throw usageError(
    `--account ${account} can be used only with a fleet, but the topics under TOPIC_PREFIX=${prefix} belong to a single account, ${own} (ACCOUNT_NAME). Leave out --account, or set TOPIC_PREFIX to the prefix of a fleet`,
  );
}

function inFolder(names: readonly string[]): string {
  if (names.length === 0) return 'ACCOUNTS_DIR has no file <account>.env';
  const more = names.length - MAX_NAMES;
  const shown = names.slice(0, MAX_NAMES).join(', ');
  return `the accounts of ACCOUNTS_DIR are ${shown}${more > 0 ? `, and ${more} more` : ''}`;
}

/** Creates an error about a wrong command line. A command that fails with it has exit code 2. */
export function usageError(message: string): CellarstreamError {
  return new CellarstreamError('SETTINGS', message);
}
