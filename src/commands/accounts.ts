import { hasAccounts, loadAccounts } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import type { SettingsSource } from '../config/load-config.ts';
import type { Config } from '../config/config.ts';
import { accountOverviews, hasProblem } from '../fleet/account-views.ts';
import type { AccountOverview } from '../fleet/account-views.ts';
import { readFleetGroupState } from '../fleet/fleet-group.ts';
import { readFleetTopic } from '../fleet/fleet-log.ts';
import type { AccountFiles } from '../fleet/account-files.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { STARTUP_RETRIES, openKafka } from '../sinks/open-kafka.ts';
import { processSource } from './one-account.ts';
import { stdoutColors, tableLines } from './terminal.ts';

/**
 * `cellarstream accounts`: prints for each account of the fleet which instance serves it, since when, and the account's state. Resolves to
 * false if an account has a problem, such as no owner or an invalid file.
 */
export async function accountsCommand({ json }: { readonly json?: boolean }): Promise<boolean> {
  const source = processSource();
  // The registry's settings are required too: without them every account's file would be invalid.
  const needs = hasAccounts(source) ? (['kafka', 'registry'] as const) : (['kafka'] as const);
  const config = loadConfig({ ...source, needs });
  const files = filesOf(config, source);
  const log = kafkaLogCreator(await createLogger({ level: config.logLevel }));
  const kafka = openKafka(config, { log, kafkaRetries: STARTUP_RETRIES });
  const { sharedPrefix } = config.topics;

  const { accounts: words, reports } = await readFleetTopic(kafka, topicNames(sharedPrefix).fleet);
  const group = await readFleetGroupState(kafka, sharedPrefix);
  const accounts = accountOverviews({ accounts: words, reports, group, files, now: Date.now() });
  process.stdout.write(json ? jsonLines(accounts) : table(accounts));
  return !accounts.some(hasProblem);
}

function filesOf({ accountsDir, ...own }: Config, source: SettingsSource): AccountFiles {
  if (accountsDir === undefined) return new Map();
  return loadAccounts({ ...source, config: { ...own, accountsDir } });
}

function jsonLines(accounts: readonly AccountOverview[]): string {
  return accounts
    .map(({ account, state, owner = null, since, problem = null, figures }) => {
      const { ready = null, lagMs = null, lookedAt, quota = null } = figures ?? {};
      const line = {
        ...{ account, state, instance: owner, since: timeOf(since) ?? null, problem },
        ...{ ready, lagMs, lookedAt: timeOf(lookedAt ?? undefined) ?? null, quota },
      };
      return `${JSON.stringify(line)}\n`;
    })
    .join('');
}

/** Columns of the printed table: each function returns an account's text. Without a value it is `-`, in the last column an empty text. */
const COLUMNS: readonly ((account: AccountOverview) => string)[] = [
  ({ account }) => account,
  ({ state }) => state,
  ({ owner = '-' }) => owner,
  ({ since }) => timeOf(since) ?? '-',
  ({ figures }) => (figures?.lagMs == null ? '-' : `lag ${(figures.lagMs / 1_000).toFixed(1)} s`),
  ({ figures }) =>
    figures?.quota ? `${figures.quota.name} ${figures.quota.used} of ${figures.quota.limit}` : '-',
  ({ problem = '' }) => problem,
];
const STATE_COLUMN = 1;

function table(accounts: readonly AccountOverview[]): string {
  if (accounts.length === 0) return 'the fleet has no accounts\n';
  const { red, green, yellow } = stdoutColors();
  const rows = accounts.map((account) => COLUMNS.map((cell) => cell(account)));
  const lines = tableLines(rows, STATE_COLUMN, (text, row) => {
    if (hasProblem(accounts[row]!)) return red(text);
    return accounts[row]!.state === 'running' ? green(text) : yellow(text);
  });
  return lines.map((line) => `${line}\n`).join('');
}

function timeOf(since: number | undefined): string | undefined {
  return since === undefined ? undefined : new Date(since).toISOString();
}
