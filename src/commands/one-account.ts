import { accountNames, hasAccounts, loadAccount } from '../config/accounts.ts';
import type { AccountsOptions } from '../config/accounts.ts';
import type { ConfigWith, Need } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { CellarstreamError } from '../core/errors.ts';

/** Environment and working directory that settings are read from. */
export type SettingsSource = Pick<AccountsOptions, 'env' | 'cwd'>;

/** Maximum number of account names in an error text. */
const MAX_NAMES = 10;

/**
 * Loads the settings of the account that a command is for. With `ACCOUNTS_DIR` the account has to be named, and its file is read; otherwise
 * there is only the account of the environment.
 *
 * @param account Value of `--account`.
 * @throws CellarstreamError `SETTINGS` if no account is named or there is none with the name; also the errors of `loadAccount`.
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
      `--account ${account}: the one account here is ${config.account} (ACCOUNT_NAME); for accounts of a fleet set ACCOUNTS_DIR`,
    );
  }
  // The environment need not have the settings that the account's file provides.
  const { accountsDir = '', ...own } = loadConfig(source);
  const names = accountNames(accountsDir);
  if (account === undefined) throw usageError(`--account is needed: ${inFolder(names)}`);
  if (!names.includes(account)) throw usageError(`--account ${account}: ${inFolder(names)}`);
  return loadAccount(account, { ...source, config: { ...own, accountsDir } }, needs);
}

function inFolder(names: readonly string[]): string {
  if (names.length === 0) return 'ACCOUNTS_DIR has no file <account>.env';
  const more = names.length - MAX_NAMES;
  const shown = names.slice(0, MAX_NAMES).join(', ');
  return `the accounts of ACCOUNTS_DIR are ${shown}${more > 0 ? `, and ${more} more` : ''}`;
}

function usageError(message: string): CellarstreamError {
  return new CellarstreamError('SETTINGS', message);
}
