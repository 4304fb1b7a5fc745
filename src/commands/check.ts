import { hasAccounts } from '../config/accounts.ts';
import { checkAccount } from './check-account.ts';
import { checkFleet } from './check-fleet.ts';
import { findingsTable } from './findings.ts';

/**
 * `cellarstream check`: tries once what `run` needs, changes nothing, and prints a table: of one account, or a line for each of a
 * fleet's. Resolves to whether all of it works.
 *
 * In Kafka it opens a transactional id of its own, which brokers forget after a week.
 *
 * Its requests are part of the account's quota: a service that runs gives it permits for them. Where none does it declares
 * them in the ledger, the one thing that it writes. Where Kafka can't be reached, or has no ledger yet, or does not let it
 * write, it asks by its own count: what a service asks beside it, whose declaration still runs (11 s at most, where Kafka
 * is away for it too), is not counted then.
 */
export async function checkCommand({ account }: { readonly account?: string }): Promise<boolean> {
  const source = { env: process.env, cwd: process.cwd() };
  const isFleet = account === undefined && hasAccounts(source);
  const found = isFleet ? await checkFleet(source) : await checkAccount(source, account);
  process.stdout.write(findingsTable(found));
  return found.every(({ fine }) => fine);
}
