import { accountNames, hasAccounts, loadAccount } from '../config/accounts.ts';
import type { AccountsOptions } from '../config/accounts.ts';
import type { ConfigWith, Need } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { CellarstreamError } from '../core/errors.ts';

/** Where settings come from. */
export type SettingsSource = Pick<AccountsOptions, 'env' | 'cwd'>;

/** Of a thousand accounts, a line does not name all. */
const MAX_NAMES = 10;

/**
 * The settings of the account that a command is for. With `ACCOUNTS_DIR` it has to be named, and they are those of its file; without
 * it there is one account, that of the environment.
 *
 * @param account As `--account` has it.
 * @throws CellarstreamError `SETTINGS` where it is not named, or there is none of the name; or as `loadAccount` does.
 */
export function oneAccount<N extends Need>(
  source: SettingsSource,
  account: string | undefined,
  needs: readonly N[],
): ConfigWith<N> {
  if (!hasAccounts(source)) {
    const config = loadConfig({ ...source, needs });
    if (account === undefined || account === config.account) return config;
    throw wrong(
      `--account ${account}: the one account here is ${config.account} (ACCOUNT_NAME); for accounts of a fleet set ACCOUNTS_DIR`,
    );
  }
  // What an account's file is to have is not asked of the environment.
  const { accountsDir = '', ...own } = loadConfig(source);
  const names = accountNames(accountsDir);
  if (account === undefined) throw wrong(`--account is needed: ${inFolder(names)}`);
  if (!names.includes(account)) throw wrong(`--account ${account}: ${inFolder(names)}`);
  return loadAccount(account, { ...source, config: { ...own, accountsDir } }, needs);
}

function inFolder(names: readonly string[]): string {
  if (names.length === 0) return 'ACCOUNTS_DIR has no file <account>.env';
  const more = names.length - MAX_NAMES;
  const shown = names.slice(0, MAX_NAMES).join(', ');
  return `the accounts of ACCOUNTS_DIR are ${shown}${more > 0 ? `, and ${more} more` : ''}`;
}

function wrong(message: string): CellarstreamError {
  return new CellarstreamError('SETTINGS', message);
}
