import { hasAccounts } from '../config/accounts.ts';
import { checkAccount } from './check-account.ts';
import { checkFleet } from './check-fleet.ts';
import { findingsTable } from './findings.ts';
import { processSource } from './one-account.ts';

/**
 * `cellarstream check`: tries once everything that `run` requires, and prints the results as a table: the details of one account, or a line
 * for each account of a fleet. Resolves to whether everything works.
 *
 * `check` opens a transactional id of its own in Kafka, which brokers forget after a week. It writes nothing to Kafka but requests for
 * permits and declarations in the ledger.
 *
 * The requests of `check` count against the account's quota. If the service is running, `check` requests permits from it. If not, `check`
 * declares its requests in the ledger. If Kafka is unreachable, has no ledger yet or denies the write, `check` counts only its own
 * requests. A service that is running then may exceed the quota together with `check`; if the service can't reach Kafka either, its lease
 * expires within 11 s, and it sends no requests from then on.
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
