import { hasAccounts } from '../config/accounts.ts';
import { checkAccount } from './check-account.ts';
import { checkFleet } from './check-fleet.ts';
import { findingsTable } from './findings.ts';
import { processSource } from './one-account.ts';

/**
 * `cellarstream check`: tests everything that `run` requires, and prints the results as a table: the details of one account, or a line for
 * each account of a fleet. Resolves to whether everything works.
 *
 * In Kafka, `check` opens a separate transactional id, which brokers forget after a week. It writes only requests for permits, and
 * declarations in the ledger.
 *
 * The requests of `check` to the API count against the account's quota. `check` requests permits for them from the running service or, if
 * none runs, declares them in the ledger. If it can't write to the ledger, a running service does not count them, so that both together may
 * exceed the quota.
 */
export async function checkCommand({
  account,
  measure = false,
}: {
  readonly account?: string;
  readonly measure?: boolean;
}): Promise<boolean> {
  const source = processSource();
  if (measure) return (await import('./measure.ts')).measureCommand(source, account);
  const isFleet = account === undefined && hasAccounts(source);
  const found = isFleet ? await checkFleet(source) : await checkAccount(source, account);
  process.stdout.write(findingsTable(found));
  return found.every(({ fine }) => fine);
}
